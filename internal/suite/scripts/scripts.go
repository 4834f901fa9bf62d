// Package scripts runs the commands of a program for its tests: in its scripts (testscript), and without a shell. A few processes, which are the
// program without its main, wait for commands and run one after another, each with its own arguments, variables, folder and streams: to start a process costs
// more than most commands do. Where GROVE_LONG is set, each command has a process of its own.
package scripts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Long says that tests run whole.
var Long = os.Getenv("GROVE_LONG") != ""

// program is the program of the tests, which Main sets.
var program struct {
	name string
	path string // of a file of that name, which is the test
}

// Main is the body of TestMain. It runs the tests, with the program of the name in PATH; where the process is that program, it runs the command of the arguments.
// It returns the exit code.
func Main(tests interface{ Run() int }, name string, run func(args []string) int) int {
	switch filepath.Base(os.Args[0]) {
	case name:
		return run(os.Args[1:])
	case name + waits:
		return wait(run)
	}
	return runTests(tests, name)
}

// waits ends the name of the processes that wait for commands.
const waits = "-waits"

// runTests runs the tests and returns the exit code.
func runTests(tests interface{ Run() int }, name string) int {
	folder, err := os.MkdirTemp("", "grove-scripts")
	if err == nil {
		defer os.RemoveAll(folder)
		program.name, program.path = name, filepath.Join(folder, name)
		err = copyTest(program.path)
	}
	if err == nil {
		err = os.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := tests.Run()
	for _, p := range free.list {
		if err := p.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// copyTest makes a file that is the file of the test: the program starts itself by the name of its file, which a symbolic link does not change.
func copyTest(path string) error {
	test, err := os.Executable()
	if err != nil || os.Link(test, path) == nil {
		return err
	}
	b, err := os.ReadFile(test)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o700)
}

// A Command is a command of the program.
type Command struct {
	Args  []string
	Env   []string // all variables; the last of a name counts
	Dir   string
	Stdin []byte
}

// A Result has the exit code of a command, and the bytes that it wrote.
type Result struct {
	Code           int
	Stdout, Stderr []byte
}

// Run runs a command. An error is that of the process, or of the context, and not that of the command.
func Run(ctx context.Context, c Command) (Result, error) {
	if Long {
		return c.start(ctx)
	}
	p, err := take()
	if err != nil {
		return Result{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	r, err := p.run(c)
	if !stop() || err != nil {
		return r, errors.Join(ctx.Err(), err, p.end())
	}
	// The kernels that a command chooses stay chosen, and nothing names those that were chosen before.
	if slices.ContainsFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "GROVE_KERNELS=") }) {
		return r, p.end()
	}
	give(p)
	return r, nil
}

// start runs the command in a process of its own.
func (c Command) start(ctx context.Context) (Result, error) {
	cmd := exec.CommandContext(ctx, program.name, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.Dir, c.Env, bytes.NewReader(c.Stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if failed := new(exec.ExitError); errors.As(err, &failed) && ctx.Err() == nil {
		err = nil
	}
	return Result{cmd.ProcessState.ExitCode(), stdout.Bytes(), stderr.Bytes()}, err
}

// A process runs commands, one after another.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	to  *json.Encoder
	out *json.Decoder
}

// free are the processes that wait for a command.
var free struct {
	sync.Mutex
	list []*process
}

// take returns a process that waits, a new one if none does.
func take() (*process, error) {
	free.Lock()
	defer free.Unlock()
	if n := len(free.list); n > 0 {
		p := free.list[n-1]
		free.list = free.list[:n-1]
		return p, nil
	}
	cmd := exec.Command(program.path)
	cmd.Args[0] = program.name + waits
	// A command leaves nothing: the next takes the memory that it took. One thread is the usual number for a model, and as the tests run beside each other,
	// they use all processors. -t 2 is another number.
	cmd.Env = append(os.Environ(), "GOGC=400", "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, in, json.NewEncoder(in), json.NewDecoder(out)}, cmd.Start()
}

// give lets a process wait for the next command.
func give(p *process) {
	free.Lock()
	defer free.Unlock()
	free.list = append(free.list, p)
}

// run sends a command and returns its result.
func (p *process) run(c Command) (r Result, err error) {
	if err = p.to.Encode(c); err == nil {
		err = p.out.Decode(&r)
	}
	return r, err
}

// end ends the process.
func (p *process) end() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}

// wait runs the commands that standard input tells, and returns when it ends.
func wait(run func(args []string) int) int {
	from, to := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var c Command
		err := from.Decode(&c)
		if err == io.EOF {
			return 0
		}
		var r Result
		if err == nil {
			r, err = c.do(run)
		}
		if err == nil {
			err = to.Encode(r)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

// do runs the command in this process, of whose streams, variables and folder it makes those of the command.
func (c Command) do(run func(args []string) int) (r Result, err error) {
	os.Clearenv()
	for _, v := range c.Env {
		if name, value, _ := strings.Cut(v, "="); name != "" {
			err = errors.Join(err, os.Setenv(name, value))
		}
	}
	if err = errors.Join(err, os.Chdir(c.Dir)); err != nil {
		return r, err
	}
	stdin, stdout, stderr := os.Stdin, os.Stdout, os.Stderr
	defer func() { os.Stdin, os.Stdout, os.Stderr = stdin, stdout, stderr }()
	var reads, writes [3]*os.File
	for i := range reads {
		if reads[i], writes[i], err = os.Pipe(); err != nil {
			return r, err
		}
	}
	os.Stdin, os.Stdout, os.Stderr = reads[0], writes[1], writes[2]
	var input, streams sync.WaitGroup
	input.Go(func() {
		_, _ = writes[0].Write(c.Stdin) // until the command is done
		_ = writes[0].Close()
	})
	for i, text := range []*[]byte{1: &r.Stdout, 2: &r.Stderr} {
		if text != nil {
			streams.Go(func() {
				*text, _ = io.ReadAll(reads[i]) // to the end that follows the command's
			})
		}
	}
	r.Code = run(c.Args)
	err = errors.Join(reads[0].Close(), writes[1].Close(), writes[2].Close())
	input.Wait()
	streams.Wait()
	return r, errors.Join(err, reads[1].Close(), reads[2].Close())
}
