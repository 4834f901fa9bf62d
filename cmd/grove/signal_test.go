//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestSignals interrupts a long text: its beginning and its figures are printed, and the exit code names the signal.
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

// TestChatSignals interrupts an answer, which ends it and not the conversation, and terminates one.
func TestChatSignals(t *testing.T) {
	model, template := filepath.Join(t.TempDir(), "m.gguf"), filepath.Join(t.TempDir(), "t.jinja")
	if err := craftFile("long-context", model); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(template, []byte("{% for m in messages %}{{ m.content }}{% endfor %}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		notes  []string
		want   int
	}{
		{"interrupt", syscall.SIGINT, []string{"grove: stopped\n", "grove: prompt 4 tokens, "}, 0},
		{"terminate", syscall.SIGTERM, nil, 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "grove", "chat", "-m", model, "-c", "100000", "--chat-template", template, "--temp", "0")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(in, "hello\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, 20)); err != nil {
				t.Fatal(err)
			}
			drained := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, out)
				drained <- err
			}()
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			notes := bufio.NewReader(stderr)
			for i, want := range c.notes {
				if note, err := notes.ReadString('\n'); !strings.HasPrefix(note, want) {
					t.Fatalf("standard error is %q, %v, want %q", note, err, want)
				}
				if i == 0 {
					if _, err := io.WriteString(in, "/stats\n"); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-drained; err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code tells
			if got := cmd.ProcessState.ExitCode(); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
		})
	}
}

// TestBenchServeSignal interrupts a measurement: the figures until then are printed.
func TestBenchServeSignal(t *testing.T) {
	answers := make(chan struct{})
	server := httptest.NewServer(openAI(answers))
	defer server.Close()
	cmd := exec.Command("grove", "bench", "serve", "--url", server.URL, "--requests", "5", "--concurrency", "1")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 4 { // the one ahead, two that count, and one that may just end or not
		answers <- struct{}{}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code tells
	if got := cmd.ProcessState.ExitCode(); got != 130 || errors.Len() > 0 {
		t.Errorf("exit code %d, standard error %q", got, errors.String())
	}
	if !regexp.MustCompile(`requests +(2 of 5 in .*; 3|3 of 5 in .*; 2) unfinished\n`).MatchString(out.String()) {
		t.Errorf("standard output is %s", out.String())
	}
}
