package grove_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// outer is the environment before TestMain: the go command keeps its caches where it says.
var outer = os.Environ()

// TestReadme builds and runs the program of the README as the README says: outside of the checkout, by a workspace.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n(.*?)\n## ").FindSubmatch(text)
	if program == nil {
		t.Fatal("README.md has no program")
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), program[1], 0o600); err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^    (go [^#\n]*)`).FindAllSubmatch(program[2], -1)
	if len(commands) != 3 {
		t.Fatalf("README.md has %d commands behind the program, want 3", len(commands))
	}
	find := exec.Command("go", "env", "GOCACHE")
	find.Env = outer
	cache, err := find.Output()
	if err != nil {
		t.Fatal(err)
	}
	// A workspace reads the go.mod of modules that grove's own build does not, which a fresh machine fetches here.
	env := append(outer, "GOFLAGS=", "GOWORK=", "GOCACHE="+strings.TrimSpace(string(cache)), "XDG_CACHE_HOME="+t.TempDir())
	var out []byte
	for _, c := range commands {
		words := strings.Fields(strings.Replace(string(c[1]), "../grove", here, 1))
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		cmd.Env = env
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c[1], err, out)
		}
	}
	if !strings.HasPrefix(string(out), "func (f *File) Close() error {\n") {
		t.Errorf("the program writes\n%s", out)
	}
}
