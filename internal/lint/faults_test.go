package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fault is a small change of the code that a test must find.
type fault struct {
	file   string // from the module's root
	breaks string // the promise that does not hold with it
	before string // a part of the file that occurs once
	after  string // what the fault makes of it
}

// String returns the fault's heading.
func (f fault) String() string { return f.file + ": " + f.breaks }

// parseFaults reads a list of faults: a heading "file: promise", lines of old text behind "- ", and lines of new text behind
// "+ ", none where the text is removed. Blank lines and lines that begin with # are left out.
func parseFaults(text string) (faults []fault, err error) {
	var last *fault
	for n, line := range strings.Split(text, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || mark == "#":
		case mark == "-" && last != nil && last.after == "":
			last.before += rest + "\n"
		case mark == "+" && last != nil && last.before != "":
			last.after += rest + "\n"
		default:
			file, breaks, ok := strings.Cut(line, ".go: ")
			if !ok {
				return nil, fmt.Errorf("line %d: %q is neither a heading 'file.go: promise' nor a line of text", n+1, line)
			}
			faults = append(faults, fault{file: file + ".go", breaks: breaks})
			last = &faults[len(faults)-1]
		}
	}
	for i := range faults {
		f := &faults[i]
		f.before, f.after = strings.TrimSuffix(f.before, "\n"), strings.TrimSuffix(f.after, "\n")
	}
	return faults, nil
}

// plant returns a source with the fault. Errors: the old text does not occur once; the result is no Go code.
func (f fault) plant(source []byte) ([]byte, error) {
	if n := bytes.Count(source, []byte(f.before)); f.before == "" || n != 1 {
		return nil, fmt.Errorf("the old text %q occurs %d times; it must occur once", f.before, n)
	}
	changed := bytes.Replace(source, []byte(f.before), []byte(f.after), 1)
	tidy, err := format.Source(changed)
	if err == nil && bytes.Equal(tidy, source) {
		return nil, errors.New("it changes nothing")
	}
	return changed, err
}

func readFaults(t *testing.T) []fault {
	t.Helper()
	text, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	faults, err := parseFaults(string(text))
	if err != nil {
		t.Fatal("testdata/faults.txt: ", err)
	}
	return faults
}

// TestFaults holds that every fault of the list can be planted, and that no two are the same.
func TestFaults(t *testing.T) {
	faults := readFaults(t)
	if len(faults) < 50 {
		t.Errorf("%d faults are listed, fewer than 50", len(faults))
	}
	seen := map[string]bool{}
	for _, f := range faults {
		source, err := os.ReadFile(filepath.Join("../..", f.file))
		if err == nil {
			_, err = f.plant(source)
		}
		if err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if seen[f.String()] {
			t.Errorf("%s: it is listed twice", f)
		}
		seen[f.String()] = true
	}
}

// TestMutations plants faults, each in an overlay that leaves the tree as it is, and runs tests until one fails: the test that
// testdata/finders.txt records for the fault, and if that does not fail, the tests of the fault's package and of the packages that depend
// on it, the nearest first. It runs with GROVE_MUTATE only: a regular expression that selects faults by their headings; . selects
// all. GROVE_MUTATE_PACKAGES bounds the packages that are searched. With GROVE_MUTATE_RECORD=1 it searches anew and records
// the finders; with GROVE_MUTATE_RECORD=missing it does so for the faults without a record.
func TestMutations(t *testing.T) {
	chosen := os.Getenv("GROVE_MUTATE")
	if chosen == "" {
		t.Skip("it takes minutes; GROVE_MUTATE=. runs it")
	}
	match, err := regexp.Compile(chosen)
	if err != nil {
		t.Fatal(err)
	}
	most, _ := strconv.Atoi(os.Getenv("GROVE_MUTATE_PACKAGES"))
	anew := os.Getenv("GROVE_MUTATE_RECORD")
	faults, record := readFaults(t), readFinders(t)
	order, rapid := dependents(t)
	var caught, of int
	var mutex sync.Mutex // of caught and record
	t.Run("faults", func(t *testing.T) {
		for _, f := range faults {
			known := record[f.String()]
			if !match.MatchString(f.String()) || anew == "missing" && known != (finder{}) {
				continue
			}
			if anew != "" {
				known = finder{}
			}
			of++
			packages := order[path.Dir(f.file)]
			if most > 0 {
				packages = packages[:min(most, len(packages))]
			}
			t.Run(strconv.Itoa(of), func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				by, how, err := f.find(t.TempDir(), known, packages, rapid)
				switch took := time.Since(start).Round(100 * time.Millisecond); {
				case err != nil:
					t.Errorf("| %s | cannot be planted: %v |", f, err)
				case by == finder{}:
					t.Errorf("| %s | survived | %v |", f, took)
				default:
					t.Logf("| %s | %s | %v | by %s |", f, by, took, how)
					mutex.Lock()
					defer mutex.Unlock()
					caught++
					if anew != "" && by.test != "" {
						record[f.String()] = by
						writeFinders(t, faults, record)
					}
				}
			})
		}
	})
	t.Logf("%d of %d faults are caught", caught, of)
}

// dependents returns for each package its own folder and those of the packages whose code or tests depend on it, the
// nearest first, and the packages whose tests use rapid.
func dependents(t *testing.T) (order map[string][]string, rapid map[string]bool) {
	t.Helper()
	list := exec.Command("go", "list", "-f", `{{.ImportPath}};{{join .Imports " "}};{{join .TestImports " "}} {{join .XTestImports " "}};{{len .TestGoFiles}}{{len .XTestGoFiles}}`, "./...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	importers, testers := map[string][]string{}, map[string][]string{} // of a folder
	untested, rapid := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(out)) {
		field := strings.Split(strings.TrimSpace(line), ";")
		dir, _ := moduleDir(field[0])
		untested[dir], rapid[dir] = field[3] == "00", strings.Contains(field[2], "pgregory.net/rapid")
		for i, to := range []map[string][]string{importers, testers} {
			for imported := range strings.FieldsSeq(field[i+1]) {
				if from, ours := moduleDir(imported); ours {
					to[from] = append(to[from], dir)
				}
			}
		}
	}
	order = map[string][]string{}
	for dir := range untested {
		seen, tested := map[string]bool{dir: true}, map[string]bool{}
		for level := []string{dir}; len(level) > 0; {
			var runs, next []string
			for _, d := range level {
				runs = append(append(runs, d), testers[d]...)
				for _, up := range importers[d] {
					if !seen[up] {
						seen[up] = true
						next = append(next, up)
					}
				}
			}
			if level[0] != dir {
				slices.Sort(runs)
				slices.Reverse(runs) // the root, whose tests take long, last
			}
			for _, d := range runs {
				if !tested[d] && !untested[d] {
					tested[d] = true
					order[dir] = append(order[dir], d)
				}
			}
			level = next
		}
	}
	return order, rapid
}

// The time that tests have for one fault. Tests that take longer may hang, or the machine may be busy: they run again, alone and for longer.
const (
	limit      = "60s"  // of a recorded test
	limitFirst = "300s" // for the tests of a package: internal/suite/methodtest takes minutes on a busy machine
	limitAlone = "180s" // of one test while no other fault is tried
	limitWhole = "30m"  // of the tests of a package, after each test that did not end has passed alone
)

// alone is locked by who tries one fault while no other is tried.
var alone sync.RWMutex

// find returns the first test that fails with the fault: the known one, by "record", or one of the packages in their order, by "search";
// none where none does. Errors: the fault cannot be planted or compiled.
func (f fault) find(temp string, known finder, order []string, rapid map[string]bool) (by finder, how string, err error) {
	overlay, err := f.overlay(temp)
	if err != nil {
		return finder{}, "", err
	}
	try := func(dir, test, limit string) (finder, bool, error) {
		args := []string{"test", "-vet=off", "-v", "-failfast", "-ldflags=-s -w", "-timeout", limit, "-overlay", overlay}
		if test != "" {
			args = append(args, "-run", "^"+test+"$")
		}
		args = append(args, "./"+dir)
		if rapid[dir] {
			args = append(args, "-rapid.nofailfile") // which would change the tree
		}
		out, ok := run("go", args...)
		switch {
		case ok:
			return finder{}, false, nil
		case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
			return finder{}, false, fmt.Errorf("it does not compile: %s", out)
		}
		return finder{dir, culprit(out)}, strings.Contains(out, "panic: test timed out after"), nil
	}
	check := func(dir, test string) (finder, error) {
		first := limit
		if test == "" {
			first = limitFirst
		}
		alone.RLock()
		by, hung, err := try(dir, test, first)
		alone.RUnlock()
		if !hung || err != nil {
			return by, err
		}
		alone.Lock()
		defer alone.Unlock()
		by, _, err = try(dir, by.test, limitAlone)
		if by == (finder{}) && err == nil && test == "" {
			by, _, err = try(dir, "", limitWhole)
		}
		return by, err
	}
	if known.test != "" {
		if by, err := check(known.dir, known.test); err != nil || by != (finder{}) {
			return by, "record", err
		}
	}
	for _, dir := range order {
		if by, err := check(dir, ""); err != nil || by != (finder{}) {
			return by, "search", err
		}
	}
	return finder{}, "", nil
}

// overlay writes the file with the fault, and a list for go test -overlay that puts it in the place of the file; it returns the list's name.
func (f fault) overlay(temp string) (string, error) {
	name, err := filepath.Abs(filepath.Join("../..", f.file))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if source, err = f.plant(source); err != nil {
		return "", err
	}
	planted, overlay := filepath.Join(temp, path.Base(f.file)), filepath.Join(temp, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {name: planted}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(planted, source, 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// run runs a command in the module's root and reports whether it succeeded.
func run(name string, args ...string) (output string, ok bool) {
	c := exec.CommandContext(context.Background(), name, args...)
	c.Dir = "../.."
	out, err := c.CombinedOutput()
	return string(out), err == nil
}
