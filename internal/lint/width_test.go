package lint

import (
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// limits are the greatest widths by their kinds. Tests and generated files (z_*) count only where a kind says so. A limit on the lines
// of a package would be met by cutting it in two, so there is none: small asks for the opposite.
var limits = map[string]int{
	"methods":      25,           // exported methods of a type
	"fields":       20,           // fields of a struct; an embedded one counts as one
	"names":        60,           // exported types, functions, constants and variables of a package
	"file":         maxFileLines, // lines; up to mostLines where the state is one thing, which the reason says
	"small":        0,            // lines that a package has fewer than leastLines
	"packages":     maxPackages,  // of the main module; packages of tests alone count
	"root-go":      14,           // Go files in the root, without tests
	"root-tests":   16,           // test files in the root
	"root-folders": 14,           // folders in the root, without those whose name begins with a dot
}

const (
	maxFileLines = 500
	mostLines    = 800 // of a file, with any reason
	maxPackages  = 140
	leastLines   = 60
)

// A width is a measure of a subject: "compute.Exec", "compute", "internal/kv/verbs.go", or "." for the module.
type width struct{ kind, subject string }

// A listed width is over its limit and allowed for a reason.
type listed struct {
	figure int
	reason string
}

// widths measures the module. A name that begins with a dot is no folder of the root.
func widths(root fs.FS, m *module) (map[width]int, error) {
	all := map[width]int{}
	packages := map[string]bool{}
	for _, s := range m.sources {
		packages[s.dir] = true
		switch {
		case s.dir == "." && s.test:
			all[width{"root-tests", "."}]++
		case s.dir == "." && !generated(s):
			all[width{"root-go", "."}]++
		}
	}
	all[width{"packages", "."}] = len(packages)
	for dir, n := range packageLines(m) {
		all[width{"small", dir}] = max(0, leastLines-n)
	}
	for _, s := range m.code() {
		if generated(s) {
			continue
		}
		all[width{"file", s.path}] = s.lines
		for _, d := range s.file.Decls {
			measure(all, s.dir, d)
		}
	}
	entries, err := fs.ReadDir(root, ".")
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' {
			all[width{"root-folders", "."}]++
		}
	}
	return all, err
}

// typeName names a type by the folder of its package; the root is grove.
func typeName(dir, name string) string {
	if dir == "." {
		dir = "grove"
	}
	return dir + "." + name
}

// measure adds a declaration to the widths of its package and its types.
func measure(all map[width]int, dir string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		switch {
		case !d.Name.IsExported():
		case d.Recv == nil:
			all[width{"names", dir}]++
		default:
			all[width{"methods", typeName(dir, receiver(d.Recv.List[0].Type))}]++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					all[width{"names", dir}]++
				}
				if t, ok := spec.Type.(*ast.StructType); ok {
					all[width{"fields", typeName(dir, spec.Name.Name)}] = t.Fields.NumFields()
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						all[width{"names", dir}]++
					}
				}
			}
		}
	}
}

// parseWidths reads lines "kind subject figure reason". Blank lines and lines that begin with # are left out.
func parseWidths(text string) (map[width]listed, error) {
	all := map[width]listed{}
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		field := strings.SplitN(line, " ", 4)
		if len(field) < 4 || strings.TrimSpace(field[3]) == "" {
			return nil, fmt.Errorf("line %d: %q is not 'kind subject figure reason'", n+1, line)
		}
		w := width{field[0], field[1]}
		figure, err := strconv.Atoi(field[2])
		if err != nil {
			return nil, fmt.Errorf("line %d: the figure %q is no number", n+1, field[2])
		}
		if _, known := limits[w.kind]; !known {
			return nil, fmt.Errorf("line %d: no limit is called %q", n+1, w.kind)
		}
		if _, twice := all[w]; twice {
			return nil, fmt.Errorf("line %d: %s %s is listed twice", n+1, w.kind, w.subject)
		}
		all[w] = listed{figure, field[3]}
	}
	return all, nil
}

// checkWidths compares widths with their limits and with the list, which only shrinks.
func checkWidths(have map[width]int, list map[width]listed) (bad []string) {
	for w, n := range have {
		limit, entry := limits[w.kind], list[w]
		_, isListed := list[w]
		name := w.kind + " " + w.subject
		switch {
		case w.kind == "file" && n > mostLines:
			bad = append(bad, fmt.Sprintf("%s: %d, more than %d, which no reason allows", name, n, mostLines))
		case n <= limit: // an entry is found below
		case !isListed:
			bad = append(bad, fmt.Sprintf("%s: %d, more than %d; with a reason it is the line '%s %d REASON' in testdata/width.txt", name, n, limit, name, n))
		case n > entry.figure:
			bad = append(bad, fmt.Sprintf("%s: %d, more than the %d that testdata/width.txt allows (%s)", name, n, entry.figure, entry.reason))
		case n < entry.figure:
			bad = append(bad, fmt.Sprintf("%s: %d, and testdata/width.txt allows %d: lower it", name, n, entry.figure))
		}
	}
	for w := range list {
		if n := have[w]; n <= limits[w.kind] {
			bad = append(bad, fmt.Sprintf("%s %s: %d is within the limit of %d, or there is none: remove it from testdata/width.txt", w.kind, w.subject, n, limits[w.kind]))
		}
	}
	slices.Sort(bad)
	return bad
}

// shrink lowers the figures of a list to what is, and removes the entries that nothing needs. It raises and adds none.
func shrink(text string, have map[width]int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		field := strings.SplitN(line, " ", 4)
		if len(field) == 4 && line[0] != '#' {
			n := have[width{field[0], field[1]}]
			if n <= limits[field[0]] {
				continue
			}
			if old, err := strconv.Atoi(field[2]); err == nil && n < old {
				field[2] = strconv.Itoa(n)
			}
			line = strings.Join(field, " ")
		}
		b.WriteString(line)
	}
	return b.String()
}

var update = flag.Bool("update", false, "lower the figures of testdata/width.txt and remove entries that nothing needs")

const widthList = "testdata/width.txt"

// TestWidth holds the limits. -update shrinks the list.
func TestWidth(t *testing.T) {
	root := os.DirFS("../..")
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	have, err := widths(root, m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(widthList)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		text = []byte(shrink(string(text), have))
		if err := os.WriteFile(widthList, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	list, err := parseWidths(string(text))
	if err != nil {
		t.Fatal(widthList, ": ", err)
	}
	for _, fault := range checkWidths(have, list) {
		t.Error(fault)
	}
}

// TestWidths plants widths over each limit, and sees what the list makes of them.
func TestWidths(t *testing.T) {
	root := fstest.MapFS{
		"a.go": lineFile("a", 60), "a_test.go": lineFile("a", 1), "z_a.go": lineFile("a", 900), ".git/x": &fstest.MapFile{}, "docs/x.md": &fstest.MapFile{},
		"k/k.go": &fstest.MapFile{Data: []byte("package k\n\ntype T[A any] struct {\n\ta, B int\n\tU\n}\n\nfunc (*T[A]) M() {}\nfunc (T[A]) n() {}\nfunc F() {}\n\nconst (\n\tC = 1\n\td = 2\n)\n\nvar V, W int\n")},
	}
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	have, err := widths(root, m)
	if err != nil {
		t.Fatal(err)
	}
	for w, want := range map[width]int{
		{"methods", "k.T"}: 1, {"fields", "k.T"}: 3, {"names", "k"}: 5, {"file", "a.go"}: 60, {"file", "z_a.go"}: 0, {"small", "k"}: 43, {"small", "."}: 0,
		{"packages", "."}: 2, {"root-go", "."}: 1, {"root-tests", "."}: 1, {"root-folders", "."}: 2,
	} {
		if have[w] != want {
			t.Errorf("%v: %d, want %d", w, have[w], want)
		}
	}
	for _, c := range []struct {
		figure int
		list   string
		want   string
	}{
		{25, "", ""},
		{26, "", "methods k.T: 26, more than 25; with a reason"},
		{26, "methods k.T 26 why", ""},
		{27, "methods k.T 26 why", "27, more than the 26 that"},
		{26, "methods k.T 27 why", "allows 27: lower it"},
		{25, "methods k.T 26 why", "remove it"},
		{25, "methods k.Gone 26 why", "remove it"},
	} {
		list, err := parseWidths(c.list)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(checkWidths(map[width]int{{"methods", "k.T"}: c.figure}, list), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%d beside %q: %q, want %q", c.figure, c.list, got, c.want)
		}
	}
	if got := checkWidths(map[width]int{{"file", "a.go"}: 801}, map[width]listed{{"file", "a.go"}: {801, "why"}}); len(got) != 1 {
		t.Errorf("a file of 801 lines: %q", got)
	}
	for _, text := range []string{"methods k.T 26", "methods k.T x why", "length k.T 26 why", "methods k.T 26 a\nmethods k.T 27 b"} {
		if _, err := parseWidths(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	const before, after = "# a list\nfields k.T 30 a b\nfields k.U 22 c\nfields k.V 21 d\n", "# a list\nfields k.T 28 a b\nfields k.V 21 d\n"
	if got := shrink(before, map[width]int{{"fields", "k.T"}: 28, {"fields", "k.V"}: 40}); got != after {
		t.Errorf("shrunk: %q, want %q", got, after)
	}
}

// TestHouse prints the figures that say how wide the house is, beside their goals. Lines are those of all *.go files of the main
// module that git knows, without z_*, wherever they are: folders that the go command leaves out, testdata among them, count too.
func TestHouse(t *testing.T) {
	root := os.DirFS("../..")
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	have, err := widths(root, m)
	if err != nil {
		t.Fatal(err)
	}
	code, tests, documents := lineCounts(t, root)
	files := map[string]int{} // of packages, without tests
	for _, s := range m.code() {
		files[s.dir]++
	}
	single := 0
	for _, n := range files {
		if n == 1 {
			single++
		}
	}
	// of returns the width of a type, which its package's name finds wherever the package is.
	of := func(kind, pkg, name string) string {
		for _, s := range m.code() {
			if w := (width{kind, typeName(s.dir, name)}); s.file.Name.Name == pkg && have[w] > 0 {
				return strconv.Itoa(have[w])
			}
		}
		return "gone"
	}
	one := func(kind string) string { return strconv.Itoa(have[width{kind, "."}]) }
	var b strings.Builder
	for _, row := range [][3]string{
		{"what", "figure", "goal"}, {"---", "---", "---"},
		{"Go files in the root, without tests / tests", one("root-go") + " / " + one("root-tests"), "<= 14 / <= 16"},
		{"folders in the root", one("root-folders"), "<= 14"},
		{"packages in the main module, of them with one file", one("packages") + ", " + strconv.Itoa(single), "<= 140"},
		{"Go lines without tests", strconv.Itoa(code), "<= 160000"},
		{"test lines", strconv.Itoa(tests), "<= 110000"},
		{"exported methods of compute.Exec / grove.Model", of("methods", "compute", "Exec") + " / " + of("methods", "grove", "Model"), "<= 40 / <= 24"},
		{"fields of Request / Options / speculate.Text (once drafting.Text) / Exec", of("fields", "grove", "Request") + " / " + of("fields", "grove", "Options") + " / " + of("fields", "speculate", "Text") + " / " + of("fields", "compute", "Exec"), "<= 20 / <= 12 / gone / <= 20"},
		{"lines of documents", strconv.Itoa(documents), "<= 8500"},
		{"tests of the module", "measured by: time go test ./...", "<= 3 min 30 s"},
		{"the gate", "measured by: time .ci/run", "<= 15 min"},
		{"binary", "measured by: the README's command, then ls -l grove", "<= 36 MB"},
	} {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row[:], " | "))
	}
	t.Log("\n" + b.String())
}

// lineCounts returns the lines of Go code, of Go tests and of documents of the main module.
func lineCounts(t *testing.T, root fs.FS) (code, tests, documents int) {
	t.Helper()
	out, ok := run("git", "ls-files")
	if !ok {
		t.Skip("no git says which files the module has")
	}
	names := strings.Fields(out)
	var nested []string // folders of other modules
	for _, name := range names {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			nested = append(nested, path.Dir(name)+"/")
		}
	}
	for _, name := range names {
		inNested := slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(name, dir) })
		if ext := path.Ext(name); ext != ".go" && ext != ".md" || ext == ".go" && (inNested || strings.HasPrefix(path.Base(name), "z_")) {
			continue
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue // git knows it, and it is being removed
		}
		n := strings.Count(string(text), "\n")
		switch {
		case path.Ext(name) == ".md":
			documents += n
		case strings.HasSuffix(name, "_test.go"):
			tests += n
		default:
			code += n
		}
	}
	return code, tests, documents
}
