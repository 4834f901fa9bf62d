package lint

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A guide is a page of docs/adding. Its table of files is complete if it has every file that names a member of the kind, one that is there: a
// file in which a newcomer must name the next member names this one.
type guide struct {
	page   string
	member []string // the names of a usual member, in code and in documents
	others []string // files that name it for a reason of their own, as patterns; each must be needed
}

// everywhere are the files that may name any member: what changed, and the places of the rules of this package.
var everywhere = []string{"CHANGELOG.md", "DESIGN.md", "docs/adding/*", "docs/bytes.md", "docs/glossary.md", "docs/guides.md", "docs/methods/*", "internal/lint/*"}

var guides = []guide{
	{"docs/adding/method.md", []string{"ngram-pool", "method/text"}, nil},
	{"docs/adding/rule.md", []string{"traversal-iid", "TraversalIID"}, []string{"internal/engine/rule_test.go"}},
	{"docs/adding/search.md", []string{"awrs"}, []string{"docs/constraints.md"}}, // it is part of a constraint
	{"docs/adding/constraint.md", []string{"TopNSigma", "top_n_sigma", "top-n-sigma", "top-nsigma"},
		[]string{"internal/engine/drafts_test.go", "internal/suite/front/recommend_test.go", "internal/suite/modeltest/frozen_draws_test.go", "server/ollama_test.go"}},
	{"docs/adding/architecture.md", []string{"arcee"}, nil},
	{"docs/adding/operation.md", []string{"ReluSquared", "reluSquaredRows"}, []string{"internal/model/arch/*", "internal/model/arch/*"}}, // models that use it
	{"docs/adding/weight-type.md", []string{"Q5_1", "q5_1"}, []string{"internal/weights/quantize/quantize_test.go"}},
	{"docs/adding/route.md", []string{"/detokenize", "detokenizeRequest"}, []string{"server/memory_test.go", "server/access_test.go", "server/refuse_test.go"}},
	{"docs/adding/command.md", []string{"mergeCommand", "grove merge"}, []string{"docs/adapters.md"}},
}

// TestGuides: each guide lists every file that names a member of its kind, names files that there are, quotes them as they are, and runs
// tests that there are.
func TestGuides(t *testing.T) {
	root := os.DirFS("../..")
	files, err := texts(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range guides {
		t.Run(path.Base(g.page), func(t *testing.T) {
			for _, fault := range g.check(files) {
				t.Error(fault)
			}
		})
	}
	pages, err := fs.Glob(root, "docs/adding/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !slices.ContainsFunc(guides, func(g guide) bool { return g.page == page }) {
			t.Errorf("%s: no member stands for its kind in the list guides", page)
		}
	}
}

// A tree is the text of files by their paths, and these in their order.
type tree struct {
	names []string
	text  map[string]string
}

// has reports whether there is a file like a pattern.
func (t tree) has(pattern string) bool {
	return slices.ContainsFunc(t.names, func(name string) bool { return matches(pattern, name) })
}

// texts returns the code and the documents of the module and of the modules in it; of data and generated files, the paths alone.
func texts(root fs.FS) (tree, error) {
	all := tree{text: map[string]string{}}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || path.Base(name) == "node_modules"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		all.names = append(all.names, name)
		if !slices.Contains([]string{".go", ".md", ".txtar"}, path.Ext(name)) || strings.HasPrefix(path.Base(name), "z_") {
			return nil
		}
		b, err := fs.ReadFile(root, name)
		all.text[name] = string(b)
		return err
	})
	return all, err
}

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	cells    = regexp.MustCompile(`(?m)^\| (.+?) \| .+\|$`)
	commands = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*go (?:test|run|generate|vet)\b`)
	runs     = regexp.MustCompile(`-run '?([^'\s]+)'?`)
)

// check returns what is wrong with a guide.
func (g guide) check(files tree) (bad []string) {
	text, ok := files.text[g.page]
	if !ok {
		return []string{g.page + ": there is no such page"}
	}
	_, table, found := strings.Cut(text, "\n## Files\n")
	if !found {
		return []string{g.page + ": there is no heading Files"}
	}
	table, behind, _ := strings.Cut(table, "\n## ")
	listed := patterns(table)
	for _, pattern := range listed {
		if !files.has(pattern) {
			bad = append(bad, fmt.Sprintf("%s: no file is like %s, which the table lists", g.page, pattern))
		}
	}
	listed, used := append(listed, everywhere...), map[string]bool{}
	for _, name := range files.names {
		at := slices.IndexFunc(g.member, func(m string) bool { return strings.Contains(files.text[name], m) })
		if at < 0 || slices.ContainsFunc(listed, func(p string) bool { return matches(p, name) }) {
			continue
		}
		other := slices.IndexFunc(g.others, func(p string) bool { return matches(p, name) })
		if other < 0 {
			bad = append(bad, fmt.Sprintf("%s: the table lacks %s, which has %q", g.page, name, g.member[at]))
			continue
		}
		used[g.others[other]] = true
	}
	for _, p := range g.others {
		if !used[p] {
			bad = append(bad, fmt.Sprintf("%s: nothing needs %s among the other files", g.page, p))
		}
	}
	return append(bad, checkQuoted(g.page, "\n## "+behind, files)...)
}

// patterns returns the files of a table's first column: paths in which NAME and KIND stand for any name.
func patterns(table string) (all []string) {
	for _, row := range cells.FindAllStringSubmatch(table, -1) {
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			all = append(all, strings.NewReplacer("NAME", "*", "KIND", "*").Replace(name[1]))
		}
	}
	return all
}

// matches reports whether a file is one of a pattern: a path with stars, or a folder.
func matches(pattern, name string) bool {
	if whole, _ := path.Match(pattern, name); whole {
		return true
	}
	return strings.HasPrefix(name, strings.TrimSuffix(pattern, "/")+"/")
}

// checkQuoted compares each indented block of a text with the file that the line before it names last, and looks for the tests of commands.
func checkQuoted(page, text string, files tree) (bad []string) {
	lines := strings.Split(text, "\n")
	said := "" // the line before a block
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "    ") {
			if lines[i] != "" {
				said = lines[i]
			}
			continue
		}
		var block []string
		for ; i < len(lines) && (lines[i] == "" || strings.HasPrefix(lines[i], "    ")); i++ {
			if lines[i] != "" {
				block = append(block, strings.Join(strings.Fields(lines[i]), " "))
			}
		}
		i--
		if commands.MatchString(block[0]) {
			bad = append(bad, checkCommands(page, block, files)...)
			continue
		}
		file := ""
		for _, name := range quoted.FindAllStringSubmatch(said, -1) {
			if _, ok := files.text[name[1]]; ok {
				file = name[1]
			}
		}
		if file == "" {
			bad = append(bad, fmt.Sprintf("%s: the line %q names no file of the block behind it", page, said))
		} else if !has(files.text[file], block) {
			bad = append(bad, fmt.Sprintf("%s: %s does not have the block that begins with %q", page, file, block[0]))
		}
	}
	return bad
}

// has reports whether a text has lines, one behind the other, but for white space and empty lines.
func has(text string, block []string) bool {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	for i := range lines {
		if len(lines)-i >= len(block) && slices.Equal(lines[i:i+len(block)], block) {
			return true
		}
	}
	return false
}

// checkCommands looks for a test of each name that a command runs, in one of its packages.
func checkCommands(page string, block []string, files tree) (bad []string) {
	for _, command := range block {
		run := runs.FindStringSubmatch(command)
		if run == nil || run[1] == "^$" || run[1] == "XX" {
			continue
		}
		for name := range strings.SplitSeq(run[1], "|") {
			name, _, _ = strings.Cut(strings.Trim(name, "^$"), "/")
			if !slices.ContainsFunc(files.names, func(file string) bool {
				at := path.Dir(file)
				for word := range strings.FieldsSeq(command) {
					dir, below := strings.CutSuffix(strings.TrimPrefix(word, "./"), "/...")
					if strings.HasSuffix(file, "_test.go") && (at == dir || below && strings.HasPrefix(at, dir+"/")) && strings.Contains(files.text[file], "\nfunc "+name) {
						return true
					}
				}
				return false
			}) {
				bad = append(bad, fmt.Sprintf("%s: %q runs no test that there is: %s", page, command, name))
			}
		}
	}
	return bad
}

// TestCheckGuide plants faults in a guide.
func TestCheckGuide(t *testing.T) {
	const page = "# Adding\n\n## Files\n\n| file | change |\n|---|---|\n| `internal/kv/NAME.go`, and `internal/kv/list.go` | new |\n\n## The code\n\nFrom `internal/kv/a.go`:\n\n    func a() {\n\n        b()\n    }\n\n" +
		"## The proof\n\n    go test ./internal/kv -run 'TestA/x|TestAll'\n"
	files := map[string]string{
		"docs/adding/x.md": page, "internal/kv/a.go": "package kv\n\nfunc a() {\n\n\tb()\n}\n", "internal/kv/list.go": "a()\n", "internal/kv/a_test.go": "\nfunc TestA(\nfunc TestAll(",
		"x/x_test.go": "a()",
	}
	for _, c := range []struct {
		name, file, text string
		want             string
	}{
		{"right", "", "", ""},
		{"a file that the table lacks", "y/y.go", "a()", `docs/adding/x.md: the table lacks y/y.go, which has "a()"`},
		{"no file of the table", "docs/adding/x.md", strings.Replace(page, "internal/kv/list.go", "internal/kv/none.go", 1), "no file is like internal/kv/none.go"},
		{"another code", "internal/kv/a.go", "package kv\n\nfunc a() { b() }\n", `internal/kv/a.go does not have the block that begins with "func a() {"`},
		{"no test", "internal/kv/a_test.go", "\nfunc TestA(", `runs no test that there is: TestAll`},
		{"a block of no file", "docs/adding/x.md", strings.Replace(page, "From `internal/kv/a.go`:", "It is:", 1), `the line "It is:" names no file`},
		{"no table", "docs/adding/x.md", "# Adding\n", "no heading Files"},
		{"another file that is not needed", "x/x_test.go", "", "nothing needs x/* among the other files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := tree{text: maps.Clone(files)}
			if c.file != "" {
				all.text[c.file] = c.text
			}
			all.names = slices.Sorted(maps.Keys(all.text))
			got := strings.Join(guide{"docs/adding/x.md", []string{"a()"}, []string{"x/*"}}.check(all), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
