package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const newPath = "example.com/you/grove"

// TestRewrite: paths of the module change where they are paths, and nowhere else.
func TestRewrite(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"imports", "a.go", "package a\n\nimport (\n\t\"fmt\"\n\n\t\"grove\"\n\tx \"grove/internal/kv\"\n\t_ \"grovel/kv\"\n)\n\nvar s = \"grove\" + `grove/internal/kv`\n",
			"package a\n\nimport (\n\t\"fmt\"\n\n\t\"NEW\"\n\tx \"NEW/internal/kv\"\n\t_ \"grovel/kv\"\n)\n\nvar s = \"grove\" + `grove/internal/kv`\n"},
		{"sorted", "a.go", "package a\n\nimport (\n\t\"github.com/x/y\"\n\t\"grove/internal/kv\"\n)\n", "package a\n\nimport (\n\t\"NEW/internal/kv\"\n\t\"github.com/x/y\"\n)\n"},
		{"nothing", "a.go", "package a\n\nimport \"fmt\"\n", "package a\n\nimport \"fmt\"\n"},
		{"go.mod", "go.mod", "module grove/server/e2e\n\ngo 1.26.0\n\nrequire (\n\tgrove v0.0.0 // grove\n\tx.org/grove v1.0.0\n)\n\nreplace grove => ../..\n",
			"module NEW/server/e2e\n\ngo 1.26.0\n\nrequire (\n\tNEW v0.0.0 // grove\n\tx.org/grove v1.0.0\n)\n\nreplace NEW => ../..\n"},
		{"document", "a.md", "grove serves.\n\n    import \"grove/internal/kv\"\n\n```go\nimport (\n\t\"grove\" // the root\n\t_ \"grove/method/all\"\n)\n```\n`go doc grove/internal/sample`, `go doc grove`, `grove run \"grove\"`; go -C x run grove\n",
			"grove serves.\n\n    import \"NEW/internal/kv\"\n\n```go\nimport (\n\t\"NEW\" // the root\n\t_ \"NEW/method/all\"\n)\n```\n`go doc NEW/internal/sample`, `go doc NEW`, `grove run \"grove\"`; go -C x run grove\n"},
		{"other", "a.txt", "import \"grove\"\n", "import \"grove\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := rewrite(c.file, []byte(c.text), "grove", newPath)
			if want := strings.ReplaceAll(c.want, "NEW", newPath); err != nil || string(got) != want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
			back, err := rewrite(c.file, got, newPath, "grove")
			if err != nil || string(back) != c.text {
				t.Errorf("renamed back: %v\n%s", err, back)
			}
		})
	}
	if _, err := rewrite("a.go", []byte("package"), "grove", newPath); err == nil {
		t.Error("a file that does not parse was rewritten")
	}
}

// checkout makes a checkout of a small module.
func checkout(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module "+path+"\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "a.go"), "package a\n\nimport _ \""+path+"/b\"\n")
	commit(t, dir)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commit makes a directory a checkout with all its files committed.
func commit(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "git", "init", "-q")
	run(t, dir, "git", "add", "-A")
	run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "commit", "-qm", "all")
}

// run runs a command that must succeed and returns its output. On a fresh machine it fetches what the copy depends on.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestRefused: what cannot be fetched, is done already or could not be undone is refused, and nothing changes.
func TestRefused(t *testing.T) {
	clean, dirty, done := checkout(t, "grove"), checkout(t, "grove"), checkout(t, newPath)
	write(t, filepath.Join(dirty, "b.go"), "package a\n")
	write(t, filepath.Join(clean, "b", "go.mod"), "module grove/b\n")
	commit(t, clean)
	loose, empty := t.TempDir(), t.TempDir()
	write(t, filepath.Join(loose, "go.mod"), "module grove\n")
	for _, c := range []struct{ name, root, path, want string }{
		{"no path", clean, "", "it is empty"},
		{"a space", clean, "example.com/a b", "invalid char"},
		{"a URL", clean, "https://example.com/you/grove", "invalid"},
		{"up", clean, "example.com/../grove", "invalid path element"},
		{"slash at the end", clean, "example.com/grove/", "trailing slash"},
		{"no host", clean, "grove2", "it must begin with a host"},
		{"a host alone", clean, "example.com", "and have a path on it"},
		{"done", done, newPath, "the module's path is " + newPath + " already"},
		{"dirty", dirty, newPath, "changes that are not committed (?? b.go)"},
		{"no checkout", loose, newPath, "is no checkout"},
		{"no module", empty, newPath, "has no go.mod"},
		{"a part of it", filepath.Join(clean, "b"), newPath, "name its root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := rename(c.root, c.path)
			if err == nil || n != 0 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d files, %v; want %s", n, err, c.want)
			}
		})
	}
	if n, err := rename(clean, newPath); err != nil || n != 3 {
		t.Errorf("%d files, %v", n, err)
	}
}

// TestCheckout renames a copy of this checkout. Outside of it, the program of the README is built and run with the copy; the
// copy and its nested modules load, and tests of its packages pass.
func TestCheckout(t *testing.T) {
	if os.Getenv("GROVE_LONG") == "" {
		t.Skip("GROVE_LONG is not set: this builds the whole module by another path")
	}
	copied := t.TempDir()
	for name := range strings.SplitSeq(strings.Trim(run(t, "../..", "git", "ls-files", "-coz", "--exclude-standard"), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(copied, name), string(text))
		if info, err := os.Stat(filepath.Join("../..", name)); err == nil && runtime.GOOS != "windows" {
			if err := os.Chmod(filepath.Join(copied, name), info.Mode()); err != nil {
				t.Fatal(err)
			}
		}
	}
	commit(t, copied)
	if n, err := rename(copied, newPath); err != nil || n < 300 {
		t.Fatalf("%d files, %v", n, err)
	}
	if out := run(t, copied, "gofmt", "-l", "."); out != "" {
		t.Errorf("not formatted: %s", out)
	}
	left := regexp.MustCompile(`"grove(/[^"\s]*)?"`)
	for module := range strings.SplitSeq(strings.TrimSpace(run(t, copied, "git", "ls-files", "go.mod", "*/go.mod")), "\n") {
		dir := filepath.Join(copied, filepath.Dir(module))
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil || !bytes.HasPrefix(text, []byte("module "+newPath)) || left.Match(text) {
			t.Errorf("%s: %v\n%s", module, err, text)
		}
		imports := run(t, dir, "go", "list", "-e", "-f", `{{range .Imports}}{{printf "%q\n" .}}{{end}}{{range .TestImports}}{{printf "%q\n" .}}{{end}}{{range .XTestImports}}{{printf "%q\n" .}}{{end}}`, "./...")
		if m := left.FindString(imports); m != "" {
			t.Errorf("%s: a package imports %s", module, m)
		}
	}
	run(t, copied, "go", "build", "./...")
	run(t, copied, "go", "test", "./internal/lint", "./internal/sample", "./internal/weights/gguf", "./internal/text/token", "./internal/forest")
	if out := run(t, copied, "go", "run", "./cmd/grove", "version"); !strings.Contains(out, "grove-") {
		t.Errorf("the version is %s", out)
	}

	readme, err := os.ReadFile(filepath.Join(copied, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(readme)
	if program == nil || !bytes.Contains(program[1], []byte(`"`+newPath+`"`)) {
		t.Fatalf("the README has no program that imports %s", newPath)
	}
	user := t.TempDir()
	write(t, filepath.Join(user, "main.go"), string(program[1]))
	run(t, user, "go", "mod", "init", "example.org/user")
	run(t, user, "go", "work", "init", ".", copied)
	if out := run(t, user, "go", "run", "."); !strings.HasPrefix(out, "func (f *File) Close() error {\n") {
		t.Errorf("the program of the README writes %s", out)
	}
}
