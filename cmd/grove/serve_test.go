//go:build unix

package main

import (
	"bufio"
	"encoding/json"
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
	return startServerIn(t, "", args...)
}

// startServerIn starts grove serve on a free port, in a directory that has models, or the present one for "".
func startServerIn(t *testing.T, dir string, args ...string) *running {
	t.Helper()
	cmd := exec.Command("grove", append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	cmd.Dir = dir
	if dir != "" {
		cmd.Env = append(os.Environ(), "GROVE_MODELS="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "ollama"))
	}
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
			if _, err := os.Stat(filepath.Join(dir, "of-"+model)); !os.IsNotExist(err) {
				t.Errorf("a session of a key is where those of no key are: %v", err)
			}
			if of, err := filepath.Glob(filepath.Join(dir, "@*", "of-"+model)); err != nil || len(of) != 1 {
				t.Errorf("%v %v", of, err)
			}
		}
		if code := s.stop(t, signal); code != 0 {
			t.Errorf("%v: exit code %d", signal, code)
		}
	}
}

// TestServeContexts: --context is the most of each model; one that was trained for less is served with its own, and the log names it.
func TestServeContexts(t *testing.T) {
	s := startServer(t, "-c", "300", "-m", "long="+goldens+"/llama-gqa.gguf", "-m", "short=gopher-target", "-m", "least=gopher-nano")
	s.ready(t)
	for model, want := range map[string]float64{"long": 300, "short": 256, "least": 256} {
		answer, err := http.Get(s.url + "/props?model=" + model)
		if err != nil {
			t.Fatal(err)
		}
		var props struct {
			Settings struct {
				Context float64 `json:"n_ctx"`
			} `json:"default_generation_settings"`
		}
		err = json.NewDecoder(answer.Body).Decode(&props)
		answer.Body.Close()
		if err != nil || props.Settings.Context != want {
			t.Errorf("%s: a context of %v, want %v; %v", model, props.Settings.Context, want, err)
		}
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(s.lines)
	_ = s.cmd.Wait() // the lines tell
	for _, model := range []string{"short", "least"} {
		if want := "the model was trained for no more\" model=" + model + " tokens=256 asked=300"; err != nil || !strings.Contains(string(log), want) {
			t.Errorf("no %q in %s, %v", want, log, err)
		}
	}
	if strings.Contains(string(log), "model=long") {
		t.Errorf("a model that was trained for more is named: %s", log)
	}
}

// TestServeKeys: keys are read again at SIGHUP, and those that cannot be used do not replace the old ones.
func TestServeKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("ann:sk-1st\n")
	s := startServer(t, "-m", goldens+"/llama-gqa.gguf", "--api-keys", file)
	s.ready(t)
	status := func(key string) int {
		r, err := http.NewRequest("GET", s.url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	line := func(wants string) {
		t.Helper()
		for {
			text, err := s.lines.ReadString('\n')
			if err != nil {
				t.Fatalf("no line has %q: %v", wants, err)
			}
			if strings.Contains(text, "sk-") {
				t.Errorf("a line shows a key: %s", text)
			}
			if strings.Contains(text, wants) {
				return
			}
		}
	}
	line("every user of this machine may read the keys")
	for _, step := range []struct {
		text, wants string
		one, two    int
	}{
		{"ann:sk-1st\n", "keys are read again: 1", 200, 401}, {"ann:sk-1st\nbob:sk-2nd\n", "keys are read again: 2", 200, 200}, {"ann:sk-2nd\n", "keys are read again: 1", 401, 200},
		{"ann sk-2nd\n", "the keys stay as they were", 401, 200}, {"", "the keys stay as they were", 401, 200},
	} {
		write(step.text)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		line(step.wants)
		if one, two := status("sk-1st"), status("sk-2nd"); one != step.one || two != step.two {
			t.Errorf("%q: %d and %d, want %d and %d", step.text, one, two, step.one, step.two)
		}
	}
	if code := s.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
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
	want := "grove: listen tcp " + l.Addr().String() + ": bind: address already in use; another program listens there: --port names another port, 0 any that is free\n"
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 69 || string(out) != want {
		t.Errorf("%v, %q, want %q", err, out, want)
	}
}
