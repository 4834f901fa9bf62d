package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// banned are words and phrases that have a plainer word or the word of the field.
var banned = []struct {
	word    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bguess(es|ed|ing)?\b`), "draft, draft token"},
	{regexp.MustCompile(`(?i)\blaws?\b`), "distribution"},
	{regexp.MustCompile(`(?i)\bvictims?\b`), "preempted"},
	{regexp.MustCompile(`(?i)\b(stands?|standing|stood)\s+in\s+line\b`), "queue"},
	{regexp.MustCompile(`(?i)\b(comes?|came|coming)\s+true\b`), "is accepted"},
	{regexp.MustCompile(`(?i)\bseat(s|ed)?\b`), "slot, admit"},
}

// notCovered are the packages and documents that still have banned words, as patterns of rooms or names of files. The list
// may only shrink; the test logs the entries that nothing needs any longer.
var notCovered []string

// aLine is a place in a text file.
type aLine struct {
	path, text string
	n          int
}

// sentences returns the comments and the texts of messages of the Go files that are not tests, and the lines of documents.
func sentences(root fs.FS, m *module) (all []aLine, err error) {
	for _, s := range m.code() {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
				all = append(all, aLine{s.path, lit.Value, m.fset.Position(lit.Pos()).Line})
			}
			return true
		})
		for _, group := range s.file.Comments {
			all = append(all, aLine{s.path, group.Text(), m.fset.Position(group.Pos()).Line})
		}
	}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && path.Base(name)[0] == '.':
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		b, err := fs.ReadFile(root, name)
		for i, line := range strings.Split(string(b), "\n") {
			all = append(all, aLine{name, line, i + 1})
		}
		return err
	})
	return all, err
}

// checkWords finds banned words outside the files that are not covered. stale are the entries of that list that nothing needs.
func checkWords(root fs.FS, m *module, notCovered []string) (bad, stale []string, err error) {
	all, err := sentences(root, m)
	needed := map[string]bool{}
	for _, l := range all {
		for _, b := range banned {
			word := b.word.FindString(l.text)
			if word == "" {
				continue
			}
			open := false
			for _, place := range notCovered {
				if within(l.path, place) || within(path.Dir(l.path), place) {
					open, needed[place] = true, true
				}
			}
			if !open {
				bad = append(bad, fmt.Sprintf("%s:%d: %q: write %s", l.path, l.n, word, b.instead))
			}
		}
	}
	for _, place := range notCovered {
		if !needed[place] {
			stale = append(stale, place)
		}
	}
	return bad, stale, err
}

// TestWords keeps banned words out of comments, messages and documents.
func TestWords(t *testing.T) {
	root := os.DirFS("../..")
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	bad, stale, err := checkWords(root, m, notCovered)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range bad {
		t.Error(v)
	}
	t.Log("not covered: " + strings.Join(notCovered, " "))
	if len(stale) > 0 {
		t.Log("clean, to be taken off the list: " + strings.Join(stale, " "))
	}
}

// TestCheckWords plants banned words in comments, messages and documents.
func TestCheckWords(t *testing.T) {
	for _, c := range []struct {
		name, path, text string
		want             string
	}{
		{"a comment", "internal/kv/k.go", "package kv\n\n// A guess\n// comes true.\n", `internal/kv/k.go:3: "guess": write draft, draft token`},
		{"over lines", "internal/kv/k.go", "package kv\n\n// It comes\n// true.\n", `internal/kv/k.go:3: "comes\ntrue": write is accepted`},
		{"a message", "internal/kv/k.go", "package kv\n\nvar x = \"the victim waits\"\n", `internal/kv/k.go:3: "victim": write preempted`},
		{"a document", "docs/a.md", "# A\n\nThe Law of a row.\n", `docs/a.md:3: "Law": write distribution`},
		{"a name of a method", "internal/kv/k.go", "package kv\n\nvar x = \"guess\"\n", ""},
		{"another word", "internal/kv/k.go", "package kv\n\n// A lawn, a flaw.\n", ""},
		{"a test", "internal/kv/k_test.go", "package kv\n\n// A guess.\n", ""},
		{"not covered", "internal/engine/e.go", "package engine\n\n// A guess.\n", ""},
		{"a file that is not covered", "a/b.md", "A guess.\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fstest.MapFS{c.path: {Data: []byte(c.text)}}
			m, err := load(root)
			if err != nil {
				t.Fatal(err)
			}
			bad, stale, err := checkWords(root, m, []string{"internal/engine/...", "a/b.md", "clean"})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(bad, "\n"); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !slices.Contains(stale, "clean") {
				t.Errorf("the entries that nothing needs are %v", stale)
			}
		})
	}
}
