//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// balancers are the programs that deploy/balance configures.
var balancers = []struct {
	name, config string
	run          func(file string) []string
	version, old string // the argument that asks for the version, and what that of an old program has
	named        bool   // a conversation is known by the header X-Session-Id alone
}{
	{"haproxy", "haproxy.cfg", func(file string) []string { return []string{"-db", "-f", file} }, "-v", "version 2.4", false},
	{"caddy", "Caddyfile", func(file string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} }, "version", "2.6", true},
}

// TestBalance runs the configurations of deploy/balance with three servers, where the programs are installed: turns of a conversation find
// what earlier ones computed, and no request is lost while a server drains, nor where one dies.
func TestBalance(t *testing.T) {
	for _, b := range balancers {
		t.Run(b.name, func(t *testing.T) {
			program, err := exec.LookPath(b.name)
			if err != nil {
				t.Skipf("%s is not installed; deploy/balance/check installs it where it is missing", b.name)
			}
			if version, err := exec.Command(program, b.version).CombinedOutput(); err != nil || strings.Contains(string(version), b.old) {
				t.Skipf("%s is too old: %s %v", b.name, version, err)
			}
			servers := make([]*running, 3)
			for i := range servers {
				servers[i] = startServer(t, "-m", "gopher-target", "--chat-template", "chatml", "--parallel", "2")
				servers[i].ready(t)
			}
			url := balanced(t, program, b.config, b.run, servers)
			if kept := conversations(t, url, b.named); kept < 8 {
				t.Errorf("%d of 12 conversations stay at their server", kept)
			}
			want := answerOf(t, servers[0].url, 0)
			for _, how := range []struct {
				name string
				do   func()
			}{
				{"drains", func() { _ = servers[1].cmd.Process.Signal(syscall.SIGTERM) }},
				{"dies", func() { _ = servers[2].cmd.Process.Kill() }},
			} {
				load(t, url, how.name, want, how.do)
			}
		})
	}
}

// balanced starts a balancer before servers and returns its address.
func balanced(t *testing.T, program, config string, run func(string) []string, servers []*running) string {
	t.Helper()
	text := readRoot(t, "deploy/balance/"+config)
	for i, s := range servers {
		text = strings.ReplaceAll(text, fmt.Sprintf("10.0.0.%d:8080", 11+i), strings.TrimPrefix(s.url, "http://"))
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	text = strings.Replace(text, "\n:8080 {", "\nhttp://"+address+" {", 1)
	text = strings.Replace(text, "bind :8080", "bind "+address, 1)
	file := filepath.Join(t.TempDir(), config)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.Command(program, run(file)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s := &running{cmd: cmd, url: "http://" + address}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if a, err := http.Get(s.url + "/health"); err == nil {
			a.Body.Close()
			if a.StatusCode == http.StatusOK {
				return s.url
			}
		}
	}
	t.Fatalf("%s does not answer: %s", program, said.String())
	return ""
}

// conversations holds twelve conversations of two turns, four at a time, and returns of how many the second turn finds what the first
// one computed.
func conversations(t *testing.T, url string, named bool) (kept int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for first := range 4 {
		all.Go(func() {
			for c := first; c < 12; c += 4 {
				messages := []map[string]string{{"role": "system", "content": "You write Go."}}
				for turn := range 2 {
					ask := fmt.Sprintf("// Question %d of talk %d.\n%s", turn, c, strings.Repeat(fmt.Sprintf("func f%d() int { return %d }\n", c, turn), 3))
					messages = append(messages, map[string]string{"role": "user", "content": ask})
					body, _ := json.Marshal(map[string]any{"messages": messages, "max_tokens": 8, "temperature": 0})
					header := http.Header{}
					if named {
						header.Set("X-Session-Id", fmt.Sprint("talk-", c))
					}
					a := post(t, url+"/v1/chat/completions", string(body), header)
					if a == nil {
						return
					}
					messages = append(messages, map[string]string{"role": "assistant", "content": a.Choices[0].Message.Content})
					mu.Lock()
					if turn == 1 && a.Usage.Details.Cached >= 64 {
						kept++
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return kept
}

// answered is what the test reads of an answer.
type answered struct {
	Choices []struct {
		Text    string
		Message struct{ Content string }
	}
	Usage struct {
		PromptTokens int `json:"prompt_tokens"`
		Details      struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// post sends a request and returns its answer; nil: it failed, which is an error of the test.
func post(t *testing.T, url, body string, header http.Header) *answered {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	answer := new(answered)
	if err == nil && a.StatusCode == http.StatusOK {
		err = json.Unmarshal(text, answer)
	}
	if err != nil || a.StatusCode != http.StatusOK || len(answer.Choices) == 0 {
		t.Errorf("%d: %s %v", a.StatusCode, text, err)
		return nil
	}
	return answer
}

// answerOf returns the answer to the request of a number.
func answerOf(t *testing.T, url string, n int) string {
	a := post(t, url+"/v1/completions", fmt.Sprintf(`{"prompt":"func f%d(","max_tokens":64,"temperature":1,"seed":5,"ignore_eos":true}`, n), http.Header{"X-Session-Id": {fmt.Sprint("load-", n)}})
	if a == nil {
		return ""
	}
	return a.Choices[0].Text
}

// load sends requests from eight clients, and after some of them does something to a server: no request fails, and the answers are those of
// a server alone.
func load(t *testing.T, url, name, want string, do func()) {
	t.Helper()
	var all sync.WaitGroup
	for c := range 8 {
		all.Go(func() {
			for i := range 10 {
				if c == 0 && i == 2 {
					do()
				}
				if got := answerOf(t, url, 10*c+i); c == 0 && i == 0 && got != want {
					t.Errorf("a server %s: the answer is %q; want %q", name, got, want)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.Fatalf("requests were lost while a server %s", name)
	}
}
