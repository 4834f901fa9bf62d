//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPrefixesOfKilledServers: servers on one folder are killed while they write. The next one answers as a server alone, refuses no file, and finds
// texts of those that were killed.
func TestPrefixesOfKilledServers(t *testing.T) {
	dir := t.TempDir()
	start := func(args ...string) *running {
		s := startServer(t, append(args, "-m", "gopher-target", "--threads", "1", "--forget")...)
		s.ready(t)
		return s
	}
	alone := start()
	found, rounds := 0, 6
	for i := range rounds {
		prompt := strings.Repeat(fmt.Sprintf("func f%d(x int) int { return x }\n", i/2), 16)
		want, _ := alone.complete(t, prompt)
		s := start("--prefix-dir", dir)
		s.until(t, "grove_prefix_models 1")
		got, cached := s.complete(t, prompt)
		if got != want {
			t.Errorf("round %d: %q, want %q", i, got, want)
		}
		if cached > 0 {
			found++
		}
		if i%2 == 0 {
			s.until(t, "grove_prefix_files_written_total") // the first pages; others are being written
		} else {
			s.until(t, "grove_prefix_texts_queued 0")
		}
		if text := s.metrics(t); !strings.Contains(text, "\ngrove_prefix_files_refused_total 0\n") {
			t.Errorf("round %d: files are refused", i)
		}
		if i%2 == 0 {
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = s.cmd.Wait() // it was killed
		} else if code := s.stop(t, syscall.SIGTERM); code != 0 {
			t.Errorf("round %d: code %d", i, code)
		}
	}
	if found < rounds/2 {
		t.Errorf("%d of %d texts were found", found, rounds/2)
	}
	old := time.Now().Add(-2 * time.Hour)
	all, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	left := all[0] + ".tmp-12"
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}
	s := start("--prefix-dir", dir, "--max-prefix-bytes", "8MiB")
	s.complete(t, strings.Repeat("var x = 1\n", 20))
	s.until(t, "grove_prefix_texts_queued 0")
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a writer has left that was killed is there: %v", err)
	}
}

// complete returns the answer to a prompt, and how many of its tokens were found.
func (s *running) complete(t *testing.T, prompt string) (text string, cached int) {
	t.Helper()
	answer, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"prompt":%q,"max_tokens":8,"temperature":0}`, prompt)))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Choices []struct{ Text string }
		Usage   struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || len(got.Choices) != 1 {
		t.Fatalf("%d %v", answer.StatusCode, err)
	}
	return got.Choices[0].Text, got.Usage.Details.Cached
}

// metrics returns the metrics of a server.
func (s *running) metrics(t *testing.T) string {
	t.Helper()
	answer, err := http.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// until waits until the metrics have a line, or where only its name is given another value than 0.
func (s *running) until(t *testing.T, line string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		text := s.metrics(t)
		if name, _, given := strings.Cut(line, " "); strings.Contains(text, "\n"+line+"\n") || !given && !strings.Contains(text, "\n"+name+" 0\n") {
			return
		}
	}
	t.Fatalf("%s is not seen", line)
}

// TestPrefixDirRefused: a directory that is not there, a file, and the directory of sessions are refused before a model is opened.
func TestPrefixDirRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{ // one that does not exist is made
		"--prefix-dir " + file:                                "not a directory",
		"--prefix-dir " + dir + "/. --session-dir " + dir:     "is --session-dir too; name another",
		"--prefix-dir " + dir + " --max-prefix-bytes 12parts": "max-prefix-bytes",
	} {
		c := exec.CommandContext(t.Context(), "grove", append([]string{"serve", "--addr", "127.0.0.1:0", "-m", "gopher-target"}, strings.Fields(args)...)...)
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s", args, err, out)
		}
	}
}
