package regex

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// shared returns a file of the data beside the repository, or skips the test where it is missing. Where CI is set and there is
// such data, a missing file is a failure.
func shared(t testing.TB, name string) string {
	t.Helper()
	root := filepath.Join("../../../shared")
	file := filepath.Join(root, "data", name)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	if _, err := os.Stat(root); err == nil && os.Getenv("CI") != "" {
		t.Fatalf("../shared/data/%s is missing", name)
	}
	t.Skipf("needs ../shared/data/%s: not there", name)
	return ""
}

// TestSuite runs the files of the JSON Schema Test Suite that are about expressions alone.
func TestSuite(t *testing.T) {
	n := 0
	for _, draft := range []string{"draft2020-12", "draft7"} {
		for _, name := range []string{"optional/ecmascript-regex.json", "optional/non-bmp-regex.json", "pattern.json", "patternProperties.json"} {
			n += runSuite(t, shared(t, "json-schema-test-suite/"+draft+"/"+name))
		}
	}
	t.Logf("%d texts", n)
	if n < 150 {
		t.Errorf("only %d texts were compared", n)
	}
}

func runSuite(t *testing.T, file string) (n int) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Description string
		Schema      struct {
			Pattern    *string
			Properties map[string]any `json:"patternProperties"`
			Additional *bool          `json:"additionalProperties"`
		}
		Tests []struct {
			Description string
			Data        any
			Valid       bool
		}
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, c := range g.Tests {
			s := New(Limits{})
			if text, ok := c.Data.(string); ok && g.Schema.Pattern != nil {
				id, err := ECMA(s, *g.Schema.Pattern)
				if err != nil {
					t.Errorf("%s: %v", g.Description, err)
				}
				n++
				if got := s.Matches(id, text); got != c.Valid {
					t.Errorf("%s: %s on %q: %v", g.Description, *g.Schema.Pattern, text, got)
				}
			}
			object, ok := c.Data.(map[string]any)
			if !ok || g.Schema.Additional == nil {
				continue
			}
			n++
			if got := allNamed(t, s, g.Schema.Properties, object); got != c.Valid {
				t.Errorf("%s: %s: %v", g.Description, c.Description, got)
			}
		}
	}
	return n
}

// allNamed reports whether some pattern matches each key.
func allNamed(t *testing.T, s *Store, patterns, object map[string]any) bool {
	for key := range object {
		found := false
		for source := range patterns {
			id, err := ECMA(s, source)
			if err != nil {
				t.Error(err)
			}
			found = found || s.Matches(id, key)
		}
		if !found {
			return false
		}
	}
	return true
}

// real returns all patterns and keys of patternProperties of a sample of MaskBench, in order.
func real(t testing.TB) []string {
	f, err := os.Open(shared(t, "maskbench_sample.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var line struct{ Schema any }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		collect(found, line.Schema)
	}
	var all []string
	for source := range found {
		all = append(all, source)
	}
	slices.Sort(all)
	return all
}

func collect(found map[string]bool, schema any) {
	switch v := schema.(type) {
	case []any:
		for _, sub := range v {
			collect(found, sub)
		}
	case map[string]any:
		if source, ok := v["pattern"].(string); ok {
			found[source] = true
		}
		if m, ok := v["patternProperties"].(map[string]any); ok {
			for source := range m {
				found[source] = true
			}
		}
		for _, sub := range v {
			collect(found, sub)
		}
	}
}

// TestReal compiles what schemas of the world hold.
func TestReal(t *testing.T) {
	all := real(t)
	refused := 0
	for _, source := range all {
		if _, err := ECMA(New(Limits{}), source); err != nil {
			t.Log(err)
			refused++
		}
	}
	t.Logf("%d of %d compile", len(all)-refused, len(all))
	if refused*100 > len(all) {
		t.Errorf("%d of %d are refused", refused, len(all))
	}
}

// BenchmarkReal compiles each expression in a store of its own and quotes it, as a schema does.
func BenchmarkReal(b *testing.B) {
	all := real(b)
	for b.Loop() {
		for _, source := range all {
			s := New(Limits{})
			if id, err := ECMA(s, source); err == nil {
				s.Quoted(id)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/expression")
}
