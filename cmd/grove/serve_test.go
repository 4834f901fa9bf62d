//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is a grove serve that runs.
type running struct {
	cmd   *exec.Cmd
	url   string
	lines *bufio.Reader // of standard error
}

// startServer starts grove serve on a free port.
func startServer(t *testing.T, args ...string) *running {
	t.Helper()
	cmd := exec.Command("grove", append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	s := &running{cmd: cmd, lines: bufio.NewReader(out)}
	line, err := s.lines.ReadString('\n')
	_, s.url, _ = strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || s.url == "" {
		t.Fatalf("%q, %v", line, err)
	}
	return s
}

// ready waits until the models are loaded.
func (s *running) ready(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if answer, err := http.Get(s.url + "/health"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == 200 {
				return
			}
		}
	}
	t.Fatal("the server does not become ready")
}

// stop sends a signal and returns the exit code.
func (s *running) stop(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, s.lines); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // the exit code tells
	return s.cmd.ProcessState.ExitCode()
}

// TestServe starts a server of two models, asks both, and stops it.
func TestServe(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		dir := t.TempDir()
		s := startServer(t, "--session-dir", dir, "-m", "small="+goldens+"/llama-gqa.gguf", "-m", goldens+"/llama-gqa.gguf", "--api-key", "k", "--memory-limit", "1GiB")
		s.ready(t)
		for _, model := range []string{"small", "llama-gqa"} {
			r, err := http.NewRequest("POST", s.url+"/v1/completions", strings.NewReader(`{"model":"`+model+`","prompt":"a","max_tokens":3,"session":"of-`+model+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer k")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != 200 || !strings.Contains(string(body), `"model":"`+model+`"`) {
				t.Errorf("%s: %d %s %v", model, answer.StatusCode, body, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "of-"+model)); err != nil {
				t.Error(err)
			}
		}
		if code := s.stop(t, signal); code != 0 {
			t.Errorf("%v: exit code %d", signal, code)
		}
	}
}

// TestServeChatTemplate: base models can be talked to by a template, each by its own.
func TestServeChatTemplate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines.jinja")
	if err := os.WriteFile(file, []byte("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, "-m", "a="+goldens+"/llama-gqa.gguf", "-m", "b="+goldens+"/llama-gqa.gguf",
		"--chat-template", "a=llama2", "--chat-template", file)
	s.ready(t)
	for model, want := range map[string]string{"a": "[INST] hi [/INST]", "b": "user: hi\\n"} {
		for _, path := range []string{"/apply-template", "/v1/chat/completions"} {
			answer, err := http.Post(s.url+path, "application/json", strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]`+
				map[bool]string{true: `,"max_tokens":2`}[path != "/apply-template"]+`}`))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != 200 || path == "/apply-template" && !strings.Contains(string(body), want) {
				t.Errorf("%s%s: %d %s %v, want %s", model, path, answer.StatusCode, body, err, want)
			}
		}
	}
}

// TestServePortTaken: another server on the port gives one line, and an exit code of its own.
func TestServePortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := exec.Command("grove", "serve", "--addr", l.Addr().String()).CombinedOutput()
	want := "grove: listen tcp " + l.Addr().String() + ": bind: address already in use\n"
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 69 || string(out) != want {
		t.Errorf("%v, %q, want %q", err, out, want)
	}
}
