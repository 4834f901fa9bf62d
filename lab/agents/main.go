// Command agents runs the coding agents that people use against grove serve, each in a small repository with a failing test, and prints a
// table: client, version, requests, what was refused, and whether the test passes at the end.
//
//	go -C lab run ./agents -bin DIR [-record DIR] [claude codex qwen opencode]
//
// DIR has the programs of the agents, as npm install makes node_modules/.bin. The model is gopher-target with a context of 131,072 tokens, which writes
// no sense: a proxy between agent and server holds the answers of the main loop to a script, by forced calls and structured_outputs.choice, so that
// what a good model would write goes through the whole server: template, tokens, calls, streams. -record writes the bodies of the agents' requests, which are
// replayed by the server's tests.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"grove/internal/gopher"
	"grove/internal/weights/gguf"
)

func main() {
	bin := flag.String("bin", "", "directory with the agents' programs; none: the PATH")
	record := flag.String("record", "", "directory for the bodies of requests")
	limit := flag.Duration("limit", 10*time.Minute, "time that an agent has")
	verbose := flag.Bool("v", false, "show what the agents print")
	flag.Parse()
	if err := run(*bin, *record, *limit, *verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.Exit(1)
	}
}

func run(bin, record string, limit time.Duration, verbose bool, names []string) error {
	dir, err := os.MkdirTemp("", "agents")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	address, stop, err := serve(dir)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Println("| client | version | requests | refused | result |\n|---|---|---|---|---|")
	failed := 0
	for _, a := range agents {
		if len(names) > 0 && !slices.Contains(names, a.name) {
			continue
		}
		path := a.name
		if bin != "" {
			path = filepath.Join(bin, a.name)
		}
		if _, err := exec.LookPath(path); err != nil {
			fmt.Printf("| %s | | | | not there: skipped |\n", a.name)
			continue
		}
		p := &proxy{server: address, agent: a, record: record}
		result := p.fix(path, filepath.Join(dir, a.name), limit, verbose)
		version, _ := exec.Command(path, "--version").Output()
		if result != nil || len(p.refused) > 0 {
			failed++
		}
		said := "the test passes"
		if result != nil {
			said = result.Error()
		}
		fmt.Printf("| %s | %s | %d | %s | %s |\n", a.title, strings.TrimSpace(string(version)), p.requests, strings.Join(p.refused, "; "), said)
	}
	if failed > 0 {
		return fmt.Errorf("%d agents did not get through", failed)
	}
	return nil
}

// served is the model's name.
const served = "agent-model"

// serve starts grove serve and returns its address, and what stops it.
func serve(dir string) (address string, stop func(), err error) {
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		return "", nil, err
	}
	metadata := slices.Clone(f.Metadata)
	for i, kv := range metadata {
		if strings.HasSuffix(kv.Key, ".context_length") {
			metadata[i].Value = gguf.Of(uint32(1 << 17))
		}
	}
	var file bytes.Buffer
	if err := gguf.Write(&file, metadata, f.Tensors); err != nil {
		return "", nil, err
	}
	model, grove := filepath.Join(dir, "model.gguf"), filepath.Join(dir, "grove")
	if err := os.WriteFile(model, file.Bytes(), 0o644); err != nil {
		return "", nil, err
	}
	build := exec.Command("go", "build", "-o", grove, "./cmd/grove")
	build.Dir, build.Stderr = "..", os.Stderr
	if err := build.Run(); err != nil {
		return "", nil, fmt.Errorf("go build: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = l.Addr().String()
	l.Close()
	c := exec.Command(grove, "serve", "-m", served+"="+model, "--addr", address, "-c", "131072", "--chat-template", "chatml")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", nil, err
	}
	c.Stderr = log
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = c.Process.Kill(); _ = c.Wait(); log.Close() }
	for range 300 {
		if r, err := http.Get("http://" + address + "/health"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return address, stop, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	text, _ := os.ReadFile(log.Name())
	return "", nil, fmt.Errorf("grove serve did not start: %s", text)
}

// The repository of the task.
const (
	wrong = "package add\n\n// Add adds two numbers.\nfunc Add(a, b int) int {\n\treturn a - b\n}\n"
	right = "package add\n\n// Add adds two numbers.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n"
	tests = "package add\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(2, 3); got != 5 {\n\t\tt.Errorf(\"%d, want 5\", got)\n\t}\n}\n"
	task  = "The test in this folder fails. Find the fault in add.go and mend it."
)

// fix runs the agent in a repository of its own and returns why the test does not pass; nil: it does.
func (p *proxy) fix(path, dir string, limit time.Duration, verbose bool) error {
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	for _, d := range []string{work, home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"add.go": wrong, "add_test.go": tests, "go.mod": "module add\n\ngo 1.22\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	init := exec.Command("git", "init", "-q")
	init.Dir = work
	if err := init.Run(); err != nil {
		return fmt.Errorf("git init: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	p.dir = work
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args, env, err := p.agent.set("http://"+l.Addr().String(), home)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, path, args...)
	c.Dir, c.WaitDelay = work, 5*time.Second
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "TERM=dumb", "GOCACHE=" + filepath.Join(os.TempDir(), "agents-go"), "NO_COLOR=1"}, env...)
	out, err := c.CombinedOutput()
	if verbose {
		fmt.Fprintf(os.Stderr, "%s\n", out)
	}
	if ctx.Err() != nil {
		return errors.New("it did not end in time")
	}
	test := exec.Command("go", "test", ".")
	test.Dir = work
	if text, failed := test.CombinedOutput(); failed != nil {
		return fmt.Errorf("the test fails (%.80q; the agent: %v, %.200q)", text, err, out[max(0, len(out)-200):])
	}
	return nil
}
