package lark

import (
	goparser "go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoWalks gives random texts of the Go grammar to go/parser.
func TestGoWalks(t *testing.T) {
	source := shipped(t, "go")
	legal := 0
	w := newWalker(source, " ", " ", "", "/**/")
	for seed := range uint64(150) {
		text := w.text(seed, 10+int(seed%60))
		if _, ok := read(source, text); !ok {
			continue
		}
		legal++
		if _, err := goparser.ParseFile(gotoken.NewFileSet(), "a.go", text, goparser.SkipObjectResolution); err != nil {
			t.Errorf("go/parser: %v\n%s", err, text)
		}
	}
	t.Logf("%d of 150 texts are legal", legal)
}

// TestGoFiles reads files of this repository, and with GROVE_LONG all of them and every third of Go's library.
func TestGoFiles(t *testing.T) {
	engine := byBytes(t, shipped(t, "go"))
	start, err := engine.Start()
	if err != nil {
		t.Fatal(err)
	}
	roots, files := []string{"../.."}, 0
	if os.Getenv("GROVE_LONG") != "" {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, filepath.Join(strings.TrimSpace(string(root)), "src"))
	}
	check := func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.Contains(name, "testdata") {
			return err
		}
		long, library := os.Getenv("GROVE_LONG") != "", !strings.HasPrefix(name, "..")
		if files++; !long && files%4 != 0 || library && files%3 != 0 {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		_, parseErr := goparser.ParseFile(gotoken.NewFileSet(), name, text, goparser.SkipObjectResolution)
		end, n := start, 0
		for i := 0; i < len(text) && i == n && err == nil; i += 1000 {
			var more int
			end, more, err = engine.Push(end, text[i:min(i+1000, len(text))])
			n += more
		}
		if (err == nil && engine.Ends(end)) != (parseErr == nil) {
			t.Errorf("%s: %v, go/parser: %v: %s", name, err, parseErr, around(string(text), n))
		}
		return nil
	}
	for _, root := range roots {
		if err := filepath.WalkDir(root, check); err != nil {
			t.Fatal(err)
		}
	}
	if files < 500 {
		t.Errorf("%d files", files)
	}
}

// TestGoTable has texts that a newline or a missing blank decides.
func TestGoTable(t *testing.T) {
	source := shipped(t, "go")
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"package a", true},
		{"// a file\n\n/* of\ngo */ package a // end", true},
		{"package a\n\nfunc f() {\n\tx := []int{1,\n\t\t2,\n\t}\n\treturn\n}\n// end", true},
		{"packagea", false},
		{"package a; func f() { x\n/ y }", false},
		{"package a; func f() { x /\ny }", true},
		{"package a; func f() { g(x\n) }", false},
		{"package a; func f() { g(x,\n) }", true},
		{"package a; func f() { if x {\n}\nelse {\n}\n}", false},
		{"package a; func f() { if x {\n} else {\n}\n}", true},
		{"package a; func f() { if x == T{} {\n}\n}", false},
		{"package a; func f() { if x == (T{}) {\n}\n}", true},
		{"package a; func f() { for _, x := range []int{1} {\n}\n}", true},
		{"package a; func f() { g(a--b) }", false},
		{"package a; func f() { g(a - -b) }", true},
		{"package a; func f() { g(a<-b) }", false},
		{"package a; func f() { a<-b }", true},
		{"package a; func f() { g(a/ *b) }", true},
		{"package a; func f() { g(a/*b) }", false},
		{"package a; func f() { a++; b-- }", true},
		{"package a; func f() { a := b++ }", false},
		{"package a; func f() { a.b := c }", false},
		{"package a; func f() { switch x := y.(type) { case int, []T: default: g() } }", true},
		{"package a; func f() { switch x { case 1: g() case 2: } }", false},
		{"package a; func f() { select { case x, ok := <-c: case c <- 1: default: } }", true},
		{"package a; func f() { go g }", false},
		{"package a; func f() { defer func() { recover() }() }", true},
		{"package a; func f[T any, P interface{ *T | ~int }](a, b T, c ...P) (n int, err error)", true},
		{"package a; type T[P any] = []P; type U struct { T[int]; *p.V `x`\n a, b int }", true},
		{"package a; var x = map[string][]int{\"a\": {1, 2}, `b`: nil}", true},
		{"package a; var x = 08", false},
		{"package a; var x = 08.5 + 0x_ff + 0b1_0 + 0o7 + 1e+3i + 0x1p-2 + .5", true},
		{`package a; var x = "\ud800"`, false},
		{`package a; var x = "\u00e9\x00\377\\" + 'a' + '\''`, true},
		{"package a; import \"x\"; import y \"z\"; const ( a = iota; b; c )", true},
		{"package a; const ( a; b )", false},
		{"package a; var x int; import \"y\"", false},
		{"package a; func f() { L: for { break L } }", true},
		{"package a; func f() { returnx := 1 }", true},
		{"package a; func f() { return := 1 }", false},
		{"package a; func f() { a[1:2:3] = b[:] ; c[i:] = d[T, U]{} }", true},
	} {
		if _, got := read(source, tt.text); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.text, got, tt.want)
		}
		if _, err := goparser.ParseFile(gotoken.NewFileSet(), "a.go", tt.text, goparser.SkipObjectResolution); tt.want && err != nil {
			t.Errorf("%q: %v", tt.text, err)
		}
	}
}
