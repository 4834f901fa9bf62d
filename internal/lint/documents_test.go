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

// TestMethodPages: each page of a method begins with the same five rows, and goes from its use to its limits.
func TestMethodPages(t *testing.T) {
	root := os.DirFS("../..")
	names, err := fs.Glob(root, "docs/methods/*.md")
	if err != nil || len(names) < 20 {
		t.Fatal(names, err)
	}
	rows := regexp.MustCompile(`(?m)^\| (exactness|pays|needs|asked for by|source) \| \S.* \|$`)
	for _, name := range names {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "docs/methods/README.md" {
			continue
		}
		head, _, _ := strings.Cut(string(text), "\n## ")
		var got []string
		for _, row := range rows.FindAllStringSubmatch(head, -1) {
			got = append(got, row[1])
		}
		if d := cmp.Diff([]string{"exactness", "pays", "needs", "asked for by", "source"}, got); d != "" {
			t.Errorf("%s: the rows before its use:\n%s", name, d)
		}
		got = nil
		for _, h := range regexp.MustCompile(`(?m)^## (Use|Figures|Limits)\b`).FindAllStringSubmatch(prose(string(text)), -1) {
			got = append(got, h[1])
		}
		if d := cmp.Diff([]string{"Use", "Figures", "Limits"}, got); d != "" {
			t.Errorf("%s: its headings:\n%s", name, d)
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
	if n < 10 {
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
