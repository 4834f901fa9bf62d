package jinja

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestReadme holds the names and the bounds of README.md to the tables and constants.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	names := func(table map[string]operation) string {
		return "`" + strings.Join(slices.Sorted(maps.Keys(table)), "`, `") + "`."
	}
	functions := append(slices.Collect(maps.Keys(globals)), "strftime_now")
	slices.Sort(functions)
	for _, want := range []string{
		"- Filters: " + names(filters), "- Tests: " + names(tests),
		"- Methods of strings: " + names(textMethods), "- Methods of dicts: " + names(dictMethods),
		"- Functions: `" + strings.Join(functions, "`, `") + "`.",
		fmt.Sprintf("| source | %d bytes |", maxSource),
		fmt.Sprintf("in the source | %d |", maxParseDepth),
		fmt.Sprintf("in a render | %d |", maxRenderDepth),
		fmt.Sprintf("by default | %d |", defaultSteps),
		fmt.Sprintf("by default | %d |", defaultOutput),
		fmt.Sprintf("JSON nests at most %d values", maxJSONDepth),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
	for name := range strings.SplitSeq(statements, ", ") {
		if _, list, _ := strings.Cut(page, "- Statements: "); !strings.Contains(list[:strings.Index(list, "\n-")], "`"+name+"`") {
			t.Errorf("README.md lacks the statement %s", name)
		}
	}
	for name := range loopAttributes {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("README.md lacks loop.%s", name)
		}
	}
}

// TestTables holds every entry of the tables to a golden that uses it.
func TestTables(t *testing.T) {
	data, err := os.ReadFile("testdata/language.json")
	if err != nil {
		t.Fatal(err)
	}
	for before, table := range map[string]map[string]operation{"|": filters, "is ": tests, ".": textMethods, ". ": dictMethods} {
		for name := range table {
			if sources := string(data); !strings.Contains(sources, strings.TrimSpace(before)+name) &&
				!strings.Contains(sources, before+name) && !strings.Contains(sources, "'"+name+"'") {
				t.Errorf("no source of testdata/language.json uses %s%s", before, name)
			}
		}
	}
}
