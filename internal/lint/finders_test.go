package lint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A finder is a test that finds a fault.
type finder struct {
	dir  string // of the package, from the module's root
	test string // the function's name
}

// String returns the finder as testdata/finders.txt has it.
func (f finder) String() string { return f.dir + " " + f.test }

const findersFile = "testdata/finders.txt"

// readFinders returns the recorded finders by the headings of the faults: lines "heading = folder test".
func readFinders(t *testing.T) map[string]finder {
	t.Helper()
	text, err := os.ReadFile(findersFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	finders := map[string]finder{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " = ")
		field := strings.Fields(line[at+1:]) // the equals sign, the folder and the name
		if at < 0 || len(field) != 3 {
			t.Fatalf("%s: %q is not of the form 'heading = folder test'", findersFile, line)
		}
		if _, twice := finders[line[:at]]; twice {
			t.Errorf("%s: %s: it is listed twice", findersFile, line[:at])
		}
		finders[line[:at]] = finder{field[1], field[2]}
	}
	return finders
}

// writeFinders writes the record in the order of the faults; it lacks finders of faults that are no longer listed.
func writeFinders(t *testing.T, faults []fault, record map[string]finder) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# The test that finds each fault of faults.txt: see docs/mutation.md. GROVE_MUTATE_RECORD=1 writes it.\n\n")
	for _, f := range faults {
		if by, ok := record[f.String()]; ok {
			text.WriteString(f.String() + " = " + by.String() + "\n")
		}
	}
	temp := findersFile + ".new" // readers never see half a record
	if err := os.WriteFile(temp, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, findersFile); err != nil {
		t.Fatal(err)
	}
}

// TestFinders holds that every recorded finder is of a listed fault and names a test that exists.
func TestFinders(t *testing.T) {
	listed := map[string]bool{}
	for _, f := range readFaults(t) {
		listed[f.String()] = true
	}
	tests := map[string]string{} // the text of a folder's tests
	for heading, by := range readFinders(t) {
		if !listed[heading] {
			t.Errorf("%s: %s: no such fault is in faults.txt", findersFile, heading)
		}
		if _, read := tests[by.dir]; !read {
			names, err := filepath.Glob(filepath.Join("../..", by.dir, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				tests[by.dir] += string(text)
			}
		}
		if by.test == "" || !strings.Contains(tests[by.dir], "\nfunc "+by.test+"(") {
			t.Errorf("%s: %s: folder %q has no test %s; record its finder anew", findersFile, heading, by.dir, by.test)
		}
	}
}

var (
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\w+)`)
	endless = regexp.MustCompile(`(?m)^\s+running tests:\n\s+(\w+)`)
	started = regexp.MustCompile(`(?m)^=== (?:RUN|CONT|NAME)\s+(\w+)`)
)

// culprit returns the function of the test that failed, from what go test -v wrote: the one that is said to have failed, that ran when the
// time was over, or that ran last before the program ended; empty where none ran.
func culprit(out string) string {
	for _, names := range []*regexp.Regexp{failed, endless, started} {
		if all := names.FindAllStringSubmatch(out, -1); len(all) > 0 {
			return all[len(all)-1][1]
		}
	}
	return ""
}

func TestCulprit(t *testing.T) {
	for _, test := range []struct{ out, want string }{
		{"=== RUN   TestA\n=== RUN   TestB\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/x (0.00s)\nFAIL\n", "TestA"},
		{"=== RUN   TestA\n=== RUN   TestB\npanic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n", "TestA"},
		{"=== RUN   TestA\n=== RUN   TestB/x\nfatal error: all goroutines are asleep\n", "TestB"},
		{"panic: in init\n", ""},
	} {
		if got := culprit(test.out); got != test.want {
			t.Errorf("culprit(%q) = %q, want %q", test.out, got, test.want)
		}
	}
}
