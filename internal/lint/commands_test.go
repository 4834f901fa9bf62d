package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// goCommand finds commands of the go program in documents: on an indented line, or between backquotes.
var goCommand = regexp.MustCompile("(?m)(?:^    |`)((?:[A-Z_]+=\\S+ )*go (?:-C \\S+ )?(?:test|run|generate|build) [^`#\n]*)")

// TestGoCommands checks that the packages, tests and benchmarks that commands of documents name are there.
func TestGoCommands(t *testing.T) {
	root, n := os.DirFS("../.."), 0
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		for _, m := range goCommand.FindAllStringSubmatch(string(text), -1) {
			n++
			if err := checkGo(root, m[1]); err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 50 {
		t.Errorf("the documents have %d commands of go", n)
	}
}

// checkGo returns why a command of the go program does not do what it says, nil if it may.
func checkGo(root fs.FS, command string) error {
	dir, packages, tests := ".", []string(nil), []string(nil)
	isRun, words := false, strings.Fields(strings.ReplaceAll(command, "'", ""))
	for i, w := range words {
		switch last := words[max(i, 1)-1]; {
		case isRun && len(packages) > 0: // an argument of the program
		case last == "-C":
			dir = w
		case last == "-run" || last == "-bench" || last == "-fuzz":
			tests = append(tests, strings.Split(w, "|")...)
		case w == "run":
			isRun = true
		case w == "." || strings.HasPrefix(w, "./"):
			packages = append(packages, w)
		}
	}
	return checkPackages(root, dir, packages, tests)
}

// checkPackages returns which of the packages is missing, or which expression finds no test in them.
func checkPackages(root fs.FS, dir string, packages, tests []string) error {
	var source strings.Builder
	for _, p := range packages {
		deep := strings.HasSuffix(p, "...")
		from := path.Join(dir, strings.TrimSuffix(p, "..."))
		if _, err := fs.Stat(root, from); err != nil {
			return fmt.Errorf("there is no package %s", p)
		}
		if len(tests) == 0 {
			continue
		}
		err := fs.WalkDir(root, from, func(name string, d fs.DirEntry, err error) error {
			if d.IsDir() && name != from && !deep {
				return fs.SkipDir
			}
			if err != nil || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, name)
			source.Write(text)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, test := range tests {
		name, _, _ := strings.Cut(strings.Trim(test, "^$"), "/")
		if strings.Trim(strings.ToLower(name), "x-") == "" { // -run XXX runs none
			continue
		}
		found, err := regexp.MatchString(`(?m)^func (Test|Benchmark|Fuzz|Example)?\w*`+name, source.String())
		if err != nil || !found {
			return fmt.Errorf("no test is called %s", name)
		}
	}
	return nil
}

// TestCheckGo: which commands are refused.
func TestCheckGo(t *testing.T) {
	root := fstest.MapFS{
		"a/a_test.go":   {Data: []byte("package a\n\nfunc TestOne(t *testing.T) {}\nfunc BenchmarkTwo(b *testing.B) {}\n")},
		"a/b/b_test.go": {Data: []byte("package b\n\nfunc TestDeep(t *testing.T) {}\n")},
		"cmd/main.go":   {Data: []byte("package main\n")},
	}
	for _, c := range []struct{ command, want string }{
		{"go test ./a -run TestOne", ""},
		{"GROVE_LONG=1 go test -run 'TestOne/x|Two' ./a", ""},
		{"go test ./a -run xxx -bench Two", ""},
		{"go -C a test ./b -run TestDeep -v", ""},
		{"go test ./a/... -run TestDeep", ""},
		{"go run ./cmd ./missing -run x", ""},
		{"go test ./a -run TestDeep", "no test is called TestDeep"},
		{"go test ./a -run 'TestOne|TestThree'", "no test is called TestThree"},
		{"go test ./c", "there is no package ./c"},
		{"go -C a test ./c", "there is no package ./c"},
	} {
		got := ""
		if err := checkGo(root, c.command); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
}
