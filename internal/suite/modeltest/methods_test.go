package modeltest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"grove/method"
	_ "grove/method/all"
)

// TestReadmeMethods holds the table of methods in docs/methods/README.md to the registry, with GROVE_UPDATE=1 it writes it; and automatic mode
// to exact methods, of which each that it leaves out says why.
func TestReadmeMethods(t *testing.T) {
	pages := methodPages(t)
	var table strings.Builder
	table.WriteString("| method | paper | grade | drafts from | needs | automatic mode | page |\n|---|---|---|---|---|---|---|\n")
	for _, i := range method.All() {
		if i.Auto && i.Grade != method.Exact {
			t.Errorf("automatic mode uses %s, which is %s", i.Name, i.Grade)
		}
		if i.Grade == method.Exact && i.Auto == (i.NotAuto != "") {
			t.Errorf("method %s is exact: it is either in automatic mode (Auto) or says why not (Apart)", i.Name)
		}
		auto := "no: " + cmp.Or(i.NotAuto, "not exact")
		if i.Auto {
			auto = "yes"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s | %s | %s |\n", i.Name, i.Paper, i.Grade, i.Kind, i.Needs, auto, pages[i.Name])
	}
	hold(t, "../../../docs/methods/README.md", func(text string) string {
		_, drafts, _ := strings.Cut(text, "\n## Sources of drafts\n")
		drafts, _, _ = strings.Cut(drafts, "\n## ")
		for _, i := range method.All() {
			if !strings.Contains(drafts, "`"+i.Name+"`") {
				t.Errorf("docs/methods/README.md does not say what %s drafts", i.Name)
			}
		}
		return replace(t, text, `(?s)(<!-- methods -->\n\n).*?(\n\n<!-- end -->)`, strings.TrimSuffix(table.String(), "\n"))
	})
}

// methodPages returns links to what documents say of methods: the heading of a page, or of a section, begins with the names.
func methodPages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../docs/methods/*.md")
	if err != nil {
		t.Fatal(err)
	}
	heading, pages := regexp.MustCompile(`(?m)^##? ((?:[a-z0-9-]+ and )*[a-z0-9-]+): .*$`), map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
			title := strings.TrimLeft(m[0], "# ")
			anchor := strings.ReplaceAll(regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(title), ""), " ", "-")
			for of := range strings.SplitSeq(m[1], " and ") {
				pages[of] = fmt.Sprintf("[%[1]s](%[1]s#%[2]s)", filepath.Base(name), anchor)
			}
		}
	}
	return pages
}
