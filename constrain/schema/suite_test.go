package schema

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/suite/schematest"
)

var update = flag.Bool("update", false, "write testdata/suite.txt where results improve")

// The classes of results for a group of the test suite, best first.
const (
	passed      = "pass"
	tooTight    = "tight"           // a valid text is refused
	emptyError  = "error, no valid" // refused at compile time, and no text of the group is valid
	unsupported = "unsupported"     // refused by name
	otherError  = "error"
	comment     = "comment" // a keyword that the standard lets be a comment, and that is one here
	wrong       = "WRONG"   // an invalid text is accepted
)

var ranks = []string{passed, tooTight, emptyError, unsupported, otherError, comment, wrong}

// TestSuite runs the JSON-Schema-Test-Suite and compares the classes with those of testdata/suite.txt, which has the names of the
// groups that do not pass. It only improves: -update writes better classes.
func TestSuite(t *testing.T) {
	root := schematest.Shared(t, "../..", "data/json-schema-test-suite")
	got := map[string]string{}
	counts := map[string]int{}
	for dir, draft := range map[string]Draft{"draft2020-12": Draft2020, "draft7": Draft7} {
		base := filepath.Join(root, dir)
		err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, _ := filepath.Rel(root, path)
			runSuite(t, path, filepath.ToSlash(name), draft, got, counts)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range ranks {
		t.Logf("%5d groups: %s", counts[r], r)
	}
	t.Logf("%d of %d texts as they must be", counts["text ok"], counts["text"])
	compare(t, got)
}

// runSuite runs the groups of a file.
func runSuite(t *testing.T, path, file string, draft Draft, got map[string]string, counts map[string]int) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var groups []schematest.Suite
	var descriptions []struct{ Description string }
	if err := errors.Join(json.Unmarshal(text, &groups), json.Unmarshal(text, &descriptions)); err != nil {
		t.Fatal(err)
	}
	for i, g := range groups {
		name := fmt.Sprintf("%s: %s", strings.TrimSuffix(file, ".json"), descriptions[i].Description)
		for got[name] != "" {
			name += "'"
		}
		// The standard makes format a comment; the folders of formats and format-assertion test that it is not.
		o := Options{Order: Free, Draft: draft, Annotate: strings.HasSuffix(file, "/format.json") || strings.Contains(file, "content")}
		class, why := classify(t, g, o, counts)
		if class == wrong && file == "draft7/optional/content.json" {
			class = comment
		}
		got[name] = class
		counts[class]++
		if class == wrong || class == tooTight || testing.Verbose() && class != passed {
			t.Logf("%s: %s: %s", name, class, why)
		}
	}
}

// classify compiles the schema of a group and reads its texts.
func classify(t *testing.T, g schematest.Suite, o Options, counts map[string]int) (class, why string) {
	valid := slices.ContainsFunc(g.Tests, func(x struct {
		Description string          `json:"description"`
		Valid       bool            `json:"valid"`
		Data        json.RawMessage `json:"data"`
	}) bool {
		return x.Valid
	})
	counts["text"] += len(g.Tests)
	src, err := Compile(g.Schema, o)
	switch {
	case errors.Is(err, ErrEmpty) && !valid:
		counts["text ok"] += len(g.Tests)
		return passed, ""
	case err != nil && !valid:
		return emptyError, err.Error()
	case errors.Is(err, ErrUnsupported) || errors.Is(err, ErrReference):
		return unsupported, err.Error()
	case err != nil:
		return otherError, err.Error()
	}
	class = passed
	w := schematest.NewWalker(src)
	for _, x := range g.Tests {
		text := schematest.Spaced(t, x.Data)
		n, ends := w.Read(text)
		accepted := n == len(text) && ends && w.Err == nil
		switch {
		case accepted == x.Valid:
			counts["text ok"]++
		case accepted:
			class, why = wrong, x.Description+": "+text
		case class != wrong:
			class, why = tooTight, fmt.Sprintf("%s: %s: at byte %d; %v", x.Description, text, n, w.Err)
		}
	}
	return class, why
}

// compare compares the classes with the file's.
func compare(t *testing.T, got map[string]string) {
	const file = "testdata/suite.txt"
	text, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if class, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | "); ok {
			want[name] = class
		}
	}
	better := false
	for name, class := range got {
		old, known := want[name]
		if !known {
			old = passed
		}
		switch r, o := slices.Index(ranks, class), slices.Index(ranks, old); {
		case class == wrong:
			t.Errorf("%s: an invalid text is accepted", name)
		case r > o && !(*update && len(want) == 0):
			t.Errorf("%s: %s, and was %s", name, class, old)
		case r < o:
			better = true
		}
	}
	for name := range want {
		if got[name] == "" {
			t.Errorf("%s: not in the suite", name)
		}
	}
	switch {
	case *update && !t.Failed():
		var lines []string
		for name, class := range got {
			if class != passed {
				lines = append(lines, class+" | "+name+"\n")
			}
		}
		slices.Sort(lines)
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	case better:
		t.Error("results are better than testdata/suite.txt: run with -update")
	}
}
