package lint

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fieldWords are the words that the glossary must have: those of which another word was once in use.
const fieldWords = "accept admit block codec conversation distribution draft handle hyperparameters index leader node page penalties position preempt " +
	"probs quantize queue request row sample-index sampled-token scheduler slot stage step-size throughput trunk verify"

// TestGlossary checks that the glossary is in alphabetical order, has the words of the field, and names files that there are.
func TestGlossary(t *testing.T) {
	root := os.DirFS("../..")
	text, err := fs.ReadFile(root, "docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$`).FindAllStringSubmatch(string(text), -1)[1:] {
		words = append(words, row[1])
		for file := range strings.SplitSeq(row[2], ", ") {
			if _, err := fs.Stat(root, strings.Trim(file, "`")); err != nil {
				t.Errorf("docs/glossary.md: %s: %v", row[1], err)
			}
		}
	}
	if !slices.IsSorted(words) {
		for i, w := range words[1:] {
			if w < words[i] {
				t.Errorf("docs/glossary.md: %q follows %q", w, words[i])
			}
		}
	}
	for word := range strings.FieldsSeq(fieldWords) {
		if w := strings.ReplaceAll(word, "-", " "); !slices.Contains(words, w) {
			t.Errorf("docs/glossary.md: %q is missing", w)
		}
	}
}

// link is a link of a document: its path, which may be empty, and its anchor with #.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)\s]*)?\)`)

// TestLinks checks that relative links of documents lead to files and to headings, and that links lead from the index of the guides
// to every document.
func TestLinks(t *testing.T) {
	root, pages := os.DirFS("../.."), map[string]string{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			var text []byte
			text, err = fs.ReadFile(root, name)
			pages[name] = prose(string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range pages {
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			to := target(name, l[1])
			switch _, err := fs.Stat(root, to); {
			case err != nil:
				t.Errorf("%s: the link %s leads nowhere", name, l[1])
			case l[2] != "" && !slices.Contains(anchors(pages[to]), l[2][1:]):
				t.Errorf("%s: %s has no heading %s", name, to, l[2])
			}
		}
	}
	reached, next := map[string]bool{}, []string{"docs/README.md"}
	for len(next) > 0 {
		name := next[0]
		if next = next[1:]; reached[name] {
			continue
		}
		reached[name] = true
		for _, l := range link.FindAllStringSubmatch(pages[name], -1) {
			to := target(name, l[1])
			if _, isPage := pages[to]; !isPage {
				to += "/README.md" // a link to a folder shows its README
			}
			next = append(next, to)
		}
	}
	for name := range pages {
		if !reached[name] {
			t.Errorf("no links lead from docs/README.md to %s", name)
		}
	}
}

// target returns the file to which a link of a document leads.
func target(document, link string) string {
	if link == "" {
		return document
	}
	return path.Join(path.Dir(document), link)
}

// prose returns a document without its fenced and indented blocks.
func prose(text string) string {
	text = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
	return regexp.MustCompile("(?m)^    .*$").ReplaceAllString(text, "")
}

// anchors returns the names by which links find the headings of a document: small letters, with hyphens for spaces and without other
// punctuation; a second heading of the same words gets a number.
func anchors(text string) (names []string) {
	seen := map[string]int{}
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N}_\- ]`).ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
		n := seen[name]
		if seen[name]++; n > 0 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		names = append(names, name)
	}
	return names
}

// TestAnchors: what a heading is called by links.
func TestAnchors(t *testing.T) {
	got := anchors(prose("# The `grove` command\n\n## What is kept: texts, files\n\n## Use\n\n```\n# no heading\n```\n\n    # nor this\n\n## Use\n"))
	if d := cmp.Diff([]string{"the-grove-command", "what-is-kept-texts-files", "use", "use-1"}, got); d != "" {
		t.Error(d)
	}
}

// TestMethodPages: a page of one method begins with the same five rows, and goes from its use to its limits. A page of several begins with a
// table of the same five columns, and each of its rows leads to a section, which has figures and limits.
func TestMethodPages(t *testing.T) {
	root := os.DirFS("../..")
	names, err := fs.Glob(root, "docs/methods/*.md")
	if err != nil || len(names) < 5 {
		t.Fatal(names, err)
	}
	n := 0
	for _, name := range append(names, "docs/guides.md", "docs/bytes.md") {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "docs/methods/README.md" {
			continue
		}
		bad, methods := checkMethodPage(string(text))
		n += methods
		for _, b := range bad {
			t.Errorf("%s: %s", name, b)
		}
	}
	if n < 40 {
		t.Errorf("the pages have %d methods and searches", n)
	}
}

// checkMethodPage returns what a page of methods lacks, and the number of its methods.
func checkMethodPage(text string) (bad []string, methods int) {
	const columns = "| section | exactness | pays | needs | asked for by | source |\n|---|---|---|---|---|---|\n"
	_, table, several := strings.Cut(text, columns)
	if !several {
		return checkOneMethod(text), 1
	}
	table, _, _ = strings.Cut(table, "\n\n")
	row, sections := regexp.MustCompile(`^\| \[[^\]]+\]\(#([^)]+)\)( \| \S[^|]*(?:\\\|[^|]*)*){5} \|$`), map[string]string{}
	for _, s := range strings.Split("\n"+prose(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(s, "\n")
		sections[anchors("# " + title)[0]] = body
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(table, "\n"), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			bad = append(bad, "a row of the table has an empty or a further cell: "+line)
			continue
		}
		methods++
		for _, part := range []string{"Figures", "Limits"} {
			if !regexp.MustCompile(`(?m)^\*\*` + part + `\b`).MatchString(sections[m[1]]) {
				bad = append(bad, fmt.Sprintf("section %s has no %s", m[1], part))
			}
		}
	}
	return bad, methods
}

// checkOneMethod returns what a page of one method lacks.
func checkOneMethod(text string) (bad []string) {
	head, _, _ := strings.Cut(text, "\n## ")
	var got []string
	for _, row := range regexp.MustCompile(`(?m)^\| (exactness|pays|needs|asked for by|source) \| \S.* \|$`).FindAllStringSubmatch(head, -1) {
		got = append(got, row[1])
	}
	if d := cmp.Diff([]string{"exactness", "pays", "needs", "asked for by", "source"}, got); d != "" {
		bad = append(bad, "the rows before its use:\n"+d)
	}
	got = nil
	for _, h := range regexp.MustCompile(`(?m)^## (Use|Figures|Limits)\b`).FindAllStringSubmatch(prose(text), -1) {
		got = append(got, h[1])
	}
	if d := cmp.Diff([]string{"Use", "Figures", "Limits"}, got); d != "" {
		bad = append(bad, "its headings:\n"+d)
	}
	return bad
}

// TestCheckMethodPage plants what pages lack.
func TestCheckMethodPage(t *testing.T) {
	const table = "| section | exactness | pays | needs | asked for by | source |\n|---|---|---|---|---|---|\n"
	for _, c := range []struct{ name, text, want string }{
		{"whole", "# A\n\n" + table + "| [x](#x-y) | a | b | c | d | e |\n\n## x: y\n\n**Figures.** 1\n\n**Limits:**\n\n- none\n", ""},
		{"no limits", "# A\n\n" + table + "| [x](#x-y) | a | b | c | d | e |\n\n## x: y\n\n**Figures.** 1\n", "section x-y has no Limits"},
		{"no section", "# A\n\n" + table + "| [x](#z) | a | b | c | d | e |\n\n## x: y\n\n**Figures.** 1\n\n**Limits:**\n", "section z has no Figures"},
		{"an empty cell", "# A\n\n" + table + "| [x](#x-y) | a |  | c | d | e |\n\n## x: y\n", "a row of the table has an empty or a further cell"},
		{"one method", "# A\n\ntext\n", "the rows before its use"},
	} {
		bad, _ := checkMethodPage(c.text)
		if got := strings.Join(bad, "\n"); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestGoBlocks: the fenced Go of documents is Go, and the names of package grove in it are there.
func TestGoBlocks(t *testing.T) {
	root, names := os.DirFS("../.."), map[string]bool{}
	files, err := fs.Glob(root, "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:func |type |var |const |\t)([A-Z]\w*)`).FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	n, fenced, selected := 0, regexp.MustCompile("(?ms)^```go\n(.*?)^```$"), regexp.MustCompile(`\bgrove\.([A-Z]\w*)`)
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
			n++
			code, fset := block[1], token.NewFileSet()
			_, asFile := parser.ParseFile(fset, "", code, 0)
			_, asDeclarations := parser.ParseFile(fset, "", "package p\n"+code, 0)
			_, asStatements := parser.ParseFile(fset, "", "package p\nfunc _() {\n"+code+"\n}", 0)
			if asFile != nil && asDeclarations != nil && asStatements != nil {
				t.Errorf("%s: %v:\n%s", name, asStatements, code)
			}
			for _, m := range selected.FindAllStringSubmatch(code, -1) {
				if !names[m[1]] {
					t.Errorf("%s: there is no grove.%s", name, m[1])
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 5 {
		t.Errorf("the documents have %d blocks of Go", n)
	}
}

// TestFigures: each row of README's figures is that of the same name in docs/figures.md, where figures come from, without some columns.
func TestFigures(t *testing.T) {
	read := func(name, from, to string) map[string][]string {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, section, found := strings.Cut(string(text), from)
		section, _, ends := strings.Cut(section, to)
		if !found || !ends {
			t.Fatalf("%s: no figures between %q and %q", name, from, to)
		}
		rows := map[string][]string{}
		for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z][A-Z0-9_a-z]+) \| (.*) \|$`).FindAllStringSubmatch(section, -1) {
			rows[row[1]] = strings.Split(row[2], " | ")
		}
		return rows
	}
	quoted, source := read("README.md", "<!-- figures -->", "A Llama"), read("docs/figures.md", "Beside llama.cpp", "llama.cpp's figures")
	if len(quoted) == 0 {
		t.Error("README.md quotes no figures")
	}
	for weights, figures := range quoted {
		for _, f := range figures {
			if !slices.Contains(source[weights], f) {
				t.Errorf("README.md: %s: %q is not in docs/figures.md, which has %q", weights, f, source[weights])
			}
		}
	}
}
