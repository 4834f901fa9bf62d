package lint

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// TestDesignRooms compares the list of packages in DESIGN.md with the rooms.
func TestDesignRooms(t *testing.T) {
	text, err := os.ReadFile("../../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## 10. Rooms\n")
	_, list, _ := strings.Cut(section, "\n```\n")
	list, _, _ = strings.Cut(list, "\n```\n")
	var got []string
	for line := range strings.Lines(list) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.TrimSpace(what) == "" {
			t.Errorf("DESIGN.md: %s has no description", name)
		}
		got = append(got, name)
	}
	if want := strings.Fields(strings.Join(rooms, " ")); !slices.Equal(got, want) {
		t.Errorf("DESIGN.md lists the packages\n%s\nthe rooms are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLinks checks that relative links of documents lead to files, and that the index of the guides names each page.
func TestLinks(t *testing.T) {
	root := os.DirFS("../..")
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	linked := map[string]bool{}
	var pages []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		if strings.HasPrefix(name, "docs/") && name != "docs/README.md" {
			pages = append(pages, name)
		}
		text, err := fs.ReadFile(root, name)
		for _, l := range link.FindAllStringSubmatch(string(text), -1) {
			to := path.Join(path.Dir(name), l[1])
			if _, err := fs.Stat(root, to); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, l[1])
			}
			if name == "docs/README.md" {
				linked[to] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !linked[page] && !linked[path.Dir(page)] {
			t.Errorf("docs/README.md: %s is missing", page)
		}
	}
}

// TestFigures: each row of README's figures is that of the same name in CHANGELOG.md, where figures come from, without some columns.
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
	quoted, source := read("README.md", "<!-- figures -->", "A Llama"), read("CHANGELOG.md", "Beside llama.cpp", "llama.cpp's figures")
	if len(quoted) == 0 {
		t.Error("README.md quotes no figures")
	}
	for weights, figures := range quoted {
		for _, f := range figures {
			if !slices.Contains(source[weights], f) {
				t.Errorf("README.md: %s: %q is not in CHANGELOG.md, which has %q", weights, f, source[weights])
			}
		}
	}
}
