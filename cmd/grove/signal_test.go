//go:build unix

package main

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSignals interrupts a text that would go on for long: what there is of it is kept, with its
// figures, and the exit code names the signal.
func TestSignals(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.gguf")
	if err := craftFile("long-context", model); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		want   int
	}{{"interrupt", syscall.SIGINT, 130}, {"terminate", syscall.SIGTERM, 143}} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("grove", "run", "-m", model, "-c", "100000", "-n", "0", "--temp", "0", "hello")
			var figures bytes.Buffer
			cmd.Stderr = &figures
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			begun := make([]byte, len("hello, and more"))
			if _, err := io.ReadFull(out, begun); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(out)
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code tells
			if got := cmd.ProcessState.ExitCode(); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
			if !bytes.HasPrefix(begun, []byte("hello")) || !bytes.HasSuffix(rest, []byte("\n")) {
				t.Errorf("the text begins with %q and does not end its line", begun)
			}
			if got := figures.String(); !strings.HasSuffix(got, "finish: interrupted\n") || strings.Count(got, "\n") != 1 {
				t.Errorf("standard error is %q", got)
			}
		})
	}
}
