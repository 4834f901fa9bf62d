// Package lint tests the rules of the module: the order of imports, the widths of types, packages and the root, the
// banned functions and words, the doc comments, and the numbers that documents quote.
package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// modulePath is the beginning of the import paths of the module's own packages: that of this one, without its folder.
var modulePath = strings.TrimSuffix(reflect.TypeFor[module]().PkgPath(), "/internal/lint")

// A source is one Go file of the module.
type source struct {
	path  string // from the module's root, with slashes
	dir   string // of its package, "." for the root
	test  bool
	lines int
	file  *ast.File
}

// A module is all Go files of the module, without those that the go command ignores: testdata, names that begin with a dot
// or an underscore, nested modules.
type module struct {
	fset    *token.FileSet
	sources []source
}

func load(root fs.FS) (*module, error) {
	m := &module{fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && ignored(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		if base := path.Base(name); path.Ext(base) != ".go" || base[0] == '_' || base[0] == '.' {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(m.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		m.sources = append(m.sources, source{
			path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			lines: bytes.Count(text, []byte("\n")), file: file,
		})
		return nil
	})
	return m, err
}

func ignored(root fs.FS, dir string) bool {
	base := path.Base(dir)
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return base[0] == '_' || base[0] == '.' || base == "testdata" || err == nil
}

// code returns the files that are not tests.
func (m *module) code() []source {
	return slices.DeleteFunc(slices.Clone(m.sources), func(s source) bool { return s.test })
}

// at formats a violation at a place in a file.
func (m *module) at(n ast.Node, format string, args ...any) string {
	p := m.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// checks are the rules by name: each returns its violations, one a line.
var checks = map[string]func(*module) []string{
	"imports": checkImports,
	"eager":   checkEager,
	"links":   checkLinks,
	"floats":  checkFloats,
	"exits":   checkExits,
	"docs":    checkDocs,
	"markers": checkMarkers,
}

func TestModule(t *testing.T) {
	m, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(m.sources, func(s source) bool { return s.path == "internal/lint/rooms_test.go" }) {
		t.Fatal("the module's root is not where it was looked for")
	}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		t.Run(name, func(t *testing.T) {
			for _, v := range checks[name](m) {
				t.Error(v)
			}
		})
	}
	t.Log("lines by package, without tests\n" + sizeTable(m))
}

// checkImports checks the order of rooms and the doors. Tests may import any package.
func checkImports(m *module) (bad []string) {
	unknown := map[string]bool{}
	for _, s := range m.sources {
		rank, _, ok := roomOf(s.dir)
		if !ok && !unknown[s.dir] {
			unknown[s.dir] = true
			bad = append(bad, fmt.Sprintf("%s: package %q has no place in rooms: add it to the list", s.path, s.dir))
		}
		if !ok || s.test {
			continue
		}
		for _, spec := range s.file.Imports {
			dir, ours := moduleDir(strings.Trim(spec.Path.Value, `"`))
			if !ours {
				continue
			}
			why := denied(s.dir, dir)
			switch r, _, known := roomOf(dir); {
			case !known:
				bad = append(bad, m.at(spec, "imports %q, which has no place in rooms", dir))
			case why != "":
				bad = append(bad, m.at(spec, "%s imports %s: %s", s.dir, dir, why))
			case r <= rank:
				bad = append(bad, m.at(spec, "%s imports %s, which is not below it", s.dir, dir))
			}
		}
	}
	return bad
}

// registries are the packages whose Register is called by packages that a program reaches through a list alone. The list of searches is the package
// that has them all.
var registries = map[string]string{"method": "method/all", "internal/model": "internal/model/all", "search": "search/programs"}

// checkLinks finds packages that register something and that the list of their registry does not import: no program would have them.
func checkLinks(m *module) (bad []string) {
	imports := map[string]bool{} // "package > imported"
	for _, s := range m.code() {
		for _, spec := range s.file.Imports {
			if dir, ours := moduleDir(strings.Trim(spec.Path.Value, `"`)); ours {
				imports[s.dir+" > "+dir] = true
			}
		}
	}
	for _, s := range m.code() {
		for registry, list := range registries {
			if imports[s.dir+" > "+registry] && s.dir != list && !imports[list+" > "+s.dir] {
				bad = append(bad, m.uses(s, modulePath+"/"+registry, []string{"Register"}, fmt.Sprintf("add %s to package %s, or no program has it", s.dir, list))...)
			}
		}
	}
	return bad
}

// moduleDir returns the directory of a package of this module.
func moduleDir(importPath string) (dir string, ours bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

func generated(s source) bool { return strings.HasPrefix(path.Base(s.path), "z_") }

func packageLines(m *module) map[string]int {
	lines := map[string]int{}
	for _, s := range m.code() {
		if !generated(s) {
			lines[s.dir] += s.lines
		}
	}
	return lines
}

func sizeTable(m *module) string {
	var b strings.Builder
	total, lines := 0, packageLines(m)
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%6d  %s\n", lines[dir], dir)
		total += lines[dir]
	}
	fmt.Fprintf(&b, "%6d  total", total)
	return b.String()
}

// inexact are the functions of package math whose last bits differ between machines or Go
// versions, and FMA: chains of multiply-adds go through kernel.FMA32 alone.
var inexact = strings.Fields(`
	Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Cos Cosh Erf Erfc Erfcinv Erfinv Exp Exp2 Expm1 FMA
	Gamma Hypot J0 J1 Jn Lgamma Log Log10 Log1p Log2 Pow Sin Sincos Sinh Tan Tanh Y0 Y1 Yn`)

// checkFloats bans inexact functions where bits are promised (N7).
func checkFloats(m *module) (bad []string) {
	for _, s := range m.code() {
		if _, room, ok := roomOf(s.dir); ok && slices.Contains(numeric, room) {
			bad = append(bad, m.uses(s, "math", inexact, "N7: its bits are not the same everywhere")...)
		}
	}
	return bad
}

// checkExits lets only commands end the process.
func checkExits(m *module) (bad []string) {
	for _, s := range m.code() {
		if !strings.HasPrefix(s.dir, "cmd/") && !strings.HasPrefix(s.dir, "examples/") {
			const why = "only a command ends the process"
			bad = append(bad, m.uses(s, "os", []string{"Exit"}, why)...)
			bad = append(bad, m.uses(s, "log", []string{"Fatal", "Fatalf", "Fatalln"}, why)...)
		}
	}
	return bad
}

// uses returns where a file names one of the functions of a package, which its import path names.
func (m *module) uses(s source, importPath string, names []string, why string) (bad []string) {
	local, pkg := "", path.Base(importPath)
	for _, spec := range s.file.Imports {
		if spec.Path.Value != `"`+importPath+`"` {
			continue
		}
		local = pkg
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			bad = append(bad, m.at(spec, "%s is imported with a dot, which hides its functions from this test", pkg))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && local != "" && x.Name == local && slices.Contains(names, sel.Sel.Name) {
			bad = append(bad, m.at(sel, "%s.%s: %s", pkg, sel.Sel.Name, why))
		}
		return true
	})
	return bad
}

// checkMarkers keeps unfinished work out of the code.
func checkMarkers(m *module) (bad []string) {
	isMarker := func(word string) bool { return word == "TODO" || word == "FIXME" || word == "XXX" }
	notLetter := func(r rune) bool { return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }
	for _, s := range m.code() {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if words := strings.FieldsFunc(c.Text, notLetter); slices.ContainsFunc(words, isMarker) {
					bad = append(bad, m.at(c, "a mark of unfinished work: %s", c.Text))
				}
			}
		}
	}
	return bad
}
