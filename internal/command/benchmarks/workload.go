package benchmarks

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"grove/bench"
	"grove/internal/command/terminal"
)

// workloadCommand writes a workload made of the sources of Go, or of words of grove's own.
type workloadCommand struct {
	Kind string `enum:"go,typos,translation,knowledge,knowledge-open" default:"go" placeholder:"KIND" help:"What is made: tasks (go, typos, translation), or questions for grove score (knowledge, knowledge-open). Default: ${default}."`
	Root string `placeholder:"DIR" help:"Root of the Go distribution; without it, the output of go env GOROOT."`
	Out  string `arg:"" help:"File to write."`
}

// Run implements the command.
func (c *workloadCommand) Run() (err error) {
	if c.Root == "" && c.Kind != "translation" {
		if c.Root, err = goRoot(); err != nil {
			return fmt.Errorf("--root: it is not given; it is that of %w", err)
		}
	}
	if err := terminal.CheckFile(c.Out); err != nil {
		return err
	}
	var tasks bytes.Buffer
	n, err := bench.WriteWorkload(&tasks, c.Kind, c.Root)
	if err != nil {
		return err
	}
	err = terminal.WriteFile(c.Out, func(w io.Writer) error {
		_, err := tasks.WriteTo(w)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "grove: %d tasks in %s\n", n, c.Out)
	return nil
}

// goRoot returns the root of the Go distribution on this machine.
func goRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("the Go distribution, and go env GOROOT fails: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
