package lint

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// A fuzzRow is a line of the table of docs/fuzzing.md.
type fuzzRow struct {
	dir, target string
	functions   []string // DIR.NAME each, where NAME may be a method
}

var fuzzLine = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `(Fuzz[^`]+)` \\| (`[^|]+`) \\| ([0-9]+) \\|$")

// TestFuzzTargets compares docs/fuzzing.md with the code.
func TestFuzzTargets(t *testing.T) {
	m, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/fuzzing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range checkFuzz(m, string(text)) {
		t.Error(v)
	}
}

// checkFuzz returns where the table and the code differ.
func checkFuzz(m *module, text string) (bad []string) {
	var rows []fuzzRow
	for _, match := range fuzzLine.FindAllStringSubmatch(text, -1) {
		functions := strings.Split(strings.Trim(match[3], "`"), "`, `")
		rows = append(rows, fuzzRow{match[1], match[2], functions})
		if n, _ := strconv.Atoi(match[4]); n == 0 {
			bad = append(bad, fmt.Sprintf("docs/fuzzing.md: %s in %s has no seeds", match[2], match[1]))
		}
	}
	if lines := strings.Count(text, "\n| `"); lines != len(rows) {
		bad = append(bad, fmt.Sprintf("docs/fuzzing.md: %d of %d lines of the table are PACKAGE, TARGET, FUNCTIONS and SEEDS", len(rows), lines))
	}
	key := func(r fuzzRow) string { return r.dir + " " + r.target }
	if !slices.IsSortedFunc(rows, func(a, b fuzzRow) int { return strings.Compare(key(a), key(b)) }) {
		bad = append(bad, "docs/fuzzing.md: the table is not sorted by package and target")
	}
	listed, read := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		if listed[key(r)] {
			bad = append(bad, fmt.Sprintf("docs/fuzzing.md: %s stands twice", key(r)))
		}
		listed[key(r)] = true
		for _, f := range r.functions {
			read[f] = true
		}
	}
	declared := map[string]bool{}
	for _, s := range m.sources {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case s.test && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz"):
				if name := s.dir + " " + f.Name.Name; !listed[name] {
					bad = append(bad, m.at(f, "%s is not in docs/fuzzing.md", f.Name.Name))
				} else {
					delete(listed, name)
				}
			case !s.test:
				name := s.dir + "." + f.Name.Name
				if declared[name] = true; readsOutside(f) && !read[name] {
					bad = append(bad, m.at(f, "%s reads bytes from outside and has no fuzz target in docs/fuzzing.md", f.Name.Name))
				}
			}
		}
	}
	for name := range listed {
		bad = append(bad, fmt.Sprintf("docs/fuzzing.md: there is no %s", name))
	}
	for name := range read {
		if !declared[name] {
			bad = append(bad, fmt.Sprintf("docs/fuzzing.md: there is no function %s", name))
		}
	}
	return bad
}

var readerName = regexp.MustCompile(`^(Parse|Read|From|UnmarshalJSON|UnmarshalBinary)`)

// readsOutside reports whether an exported function is one that makes something of bytes: by its name, and by a parameter
// that is []byte, json.RawMessage or io.Reader. Other functions of the table are found by those who know them.
func readsOutside(f *ast.FuncDecl) bool {
	if !readerName.MatchString(f.Name.Name) {
		return false
	}
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		switch t := p.Type.(type) {
		case *ast.ArrayType:
			e, ok := t.Elt.(*ast.Ident)
			return ok && t.Len == nil && e.Name == "byte"
		case *ast.SelectorExpr:
			return t.Sel.Name == "RawMessage" || t.Sel.Name == "Reader"
		}
		return false
	}) && !(f.Recv != nil && f.Name.Name == "Read") // of an io.Reader
}

// TestCheckFuzz plants differences between the table and the code.
func TestCheckFuzz(t *testing.T) {
	const code = "package kv\n\nfunc Parse(b []byte) {}\n\nfunc ReadAll(r io.Reader) {}\n\nfunc (T) Read(b []byte) {}\n"
	const tests = "package kv\n\nfunc FuzzParse(f *testing.F) {}\n"
	const row = "| `internal/kv` | `FuzzParse` | `internal/kv.Parse`, `internal/kv.ReadAll` | 2 |\n"
	for _, c := range []struct{ name, tests, table, want string }{
		{"equal", tests, row, ""},
		{"target without a line", tests + "\nfunc FuzzOther(f *testing.F) {}\n", row, "internal/kv/k_test.go:5: FuzzOther is not in docs/fuzzing.md"},
		{"line without a target", tests, row + "| `internal/kv` | `FuzzZ` | `internal/kv.Parse` | 2 |\n", "there is no internal/kv FuzzZ"},
		{"function without a target", tests, strings.Replace(row, ", `internal/kv.ReadAll`", "", 1), "internal/kv/k.go:5: ReadAll reads bytes from outside"},
		{"no such function", tests, strings.Replace(row, "ReadAll`", "ReadAll`, `internal/kv.Gone`", 1), "there is no function internal/kv.Gone"},
		{"no seeds", tests, strings.Replace(row, "| 2 |", "| 0 |", 1), "has no seeds"},
		{"a line of another form", tests, row + "| `internal/kv` | FuzzParse | 3 |\n", "1 of 2 lines"},
		{"twice", tests, row + row, "stands twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := load(fstest.MapFS{"internal/kv/k.go": &fstest.MapFile{Data: []byte(code)}, "internal/kv/k_test.go": &fstest.MapFile{Data: []byte(c.tests)}})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(checkFuzz(m, "\n"+c.table), "\n")
			if !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
