//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A session of a terminal is a command behind "$ ", and what it writes.
type terminalSession struct{ page, command, output string }

// consoles returns the sessions of a document's fenced blocks that are called console.
func consoles(t *testing.T, page string) (all []terminalSession) {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, output, _ := strings.Cut(part, "\n")
			all = append(all, terminalSession{page, command, output})
		}
	}
	return all
}

// matches says whether a text is the output that a document shows, in which "..." is any text. A note that no model is named may come first.
func matches(shown, text string) bool {
	expr := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(shown)), `\.\.\.`, `.*`)
	return regexp.MustCompile(`(?s)^(grove: no model is named: [^\n]*\n)?` + expr + `$`).MatchString(strings.TrimSpace(text))
}

// TestConsoles: what the guides show behind a command is what the command writes, the messages of errors among it. Other systems word some of
// these otherwise.
func TestConsoles(t *testing.T) {
	dir := t.TempDir()
	standIns(t, dir)
	for file, craft := range map[string]string{
		"cut": "truncated", "strange-architecture": "klingon", "strange-words": "pre-tokenizer", "huge-keys": "huge-keys", "other": "good", "broken-template": "broken-template",
	} {
		if err := craftFile(craft, filepath.Join(dir, file+".gguf")); err != nil {
			t.Fatal(err)
		}
	}
	open := startServerIn(t, dir, "-m", "gopher-target="+filepath.Join(dir, "model.gguf"))
	keyed := startServerIn(t, dir, "-m", "model.gguf", "--api-keys", filepath.Join(dir, "keys.txt"))
	open.ready(t)
	var n int
	for _, page := range guides(t) {
		for _, s := range consoles(t, page) {
			n++
			t.Run(s.command, func(t *testing.T) {
				t.Parallel()
				program, _, _ := strings.Cut(s.command, " ")
				if _, err := exec.LookPath(program); err != nil && !strings.Contains(program, "=") {
					t.Skip(err)
				}
				server := open
				if strings.HasSuffix(s.command, "# a server with keys") {
					server = keyed
				}
				_, port, _ := strings.Cut(strings.TrimPrefix(server.url, "http://"), ":")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				command := s.command
				if strings.HasPrefix(command, "curl ") {
					command = "curl --silent --show-error " + command[5:]
				}
				cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(command, "8080", port))
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GROVE_MODELS="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "ollama"), "GROVE_N=4", "GROVE_SEED=1")
				out, err := cmd.CombinedOutput()
				if ctx.Err() != nil {
					t.Fatal(err)
				}
				if text := strings.ReplaceAll(string(out), ":"+port, ":8080"); !matches(s.output, text) {
					t.Errorf("%s shows\n%s\nthe program writes\n%s", s.page, s.output, text)
				}
			})
		}
	}
	if n < 20 {
		t.Errorf("the guides have %d sessions", n)
	}
}

// TestMatches: which outputs are those of a document.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		name, shown, text string
		want              bool
	}{
		{"equal", "grove: a (b)\n", "grove: a (b)\n", true},
		{"another", "grove: a\n", "grove: b\n", false},
		{"more before", "grove: a\n", "x\ngrove: a\n", false},
		{"more behind", "grove: a\n", "grove: a\nx\n", false},
		{"any", "grove: ...; b\n", "grove: x\ny; b\n", true},
		{"a note", "grove: a\n", "grove: no model is named: using x\ngrove: a\n", true},
	} {
		if got := matches(c.shown, c.text); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
