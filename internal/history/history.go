// Package history is the text of a random test: operations, one a line, that a test replays. A history that fails is shrunk and printed, so
// that it can be replayed and kept.
//
//	# two sequences, of which the second cuts into a page of the first
//	open 1 story=0 tokens=130
//	fork 1 2
//	truncate 2 to=70
package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Op is an operation: a verb, the numbers that it is about, and named numbers.
type Op struct {
	Verb  string
	About []int
	Named []Named
}

// Named is a number with a name, written name=number.
type Named struct {
	Name   string
	Number int
}

// Get returns a named number, otherwise where the operation does not give it.
func (o Op) Get(name string, otherwise int) int {
	for _, n := range o.Named {
		if n.Name == name {
			return n.Number
		}
	}
	return otherwise
}

// String returns the operation as a line has it.
func (o Op) String() string {
	var b strings.Builder
	b.WriteString(o.Verb)
	for _, n := range o.About {
		fmt.Fprintf(&b, " %d", n)
	}
	for _, n := range o.Named {
		fmt.Fprintf(&b, " %s=%d", n.Name, n.Number)
	}
	return b.String()
}

// History is operations in their order.
type History []Op

// String returns the text of a history: a line for each operation.
func (h History) String() string {
	var b strings.Builder
	for _, o := range h {
		b.WriteString(o.String() + "\n")
	}
	return b.String()
}

// Verbs are the operations of a kind of history: by verb, how many numbers it is about (-1: one or more) and the names that it takes.
type Verbs map[string]Form

// Form lists the arguments of a verb.
type Form struct {
	About int
	Names string // with spaces between them
}

// Bounds of texts.
const (
	maxText   = 1 << 20 // bytes
	maxOps    = 10_000
	maxAbout  = 16
	maxNumber = 1 << 20
)

// Parse reads a text. Empty lines, and lines that begin with #, say nothing. Errors name the line: a verb or a name that there is not, too
// few or too many numbers, a number beyond 2^20, a name twice; a text of more than 1 MiB or 10,000 operations.
func (v Verbs) Parse(text string) (h History, err error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("history: a text of %d bytes; %d are possible", len(text), maxText)
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		o, err := v.parse(fields)
		if err == nil && len(h) == maxOps {
			err = fmt.Errorf("more than %d operations", maxOps)
		}
		if err != nil {
			return nil, fmt.Errorf("history: line %d: %w", n, err)
		}
		h = append(h, o)
	}
	return h, nil
}

// parse reads the fields of a line.
func (v Verbs) parse(fields []string) (o Op, err error) {
	form, ok := v[fields[0]]
	if !ok {
		return o, fmt.Errorf("verb %q is not known", fields[0])
	}
	o.Verb = fields[0]
	names := strings.Fields(form.Names)
	for _, f := range fields[1:] {
		name, value, named := strings.Cut(f, "=")
		if !named {
			value = f
		}
		number, err := strconv.Atoi(value)
		switch {
		case err != nil || number > maxNumber || number < -maxNumber:
			return o, fmt.Errorf("%q is no number from %d to %d", value, -maxNumber, maxNumber)
		case !named && len(o.Named) > 0:
			return o, fmt.Errorf("number %d stands behind a named one", number)
		case !named:
			o.About = append(o.About, number)
			continue
		case !slices.Contains(names, name):
			return o, fmt.Errorf("%s takes no %q; it takes: %s", o.Verb, name, form.Names)
		case slices.ContainsFunc(o.Named, func(n Named) bool { return n.Name == name }):
			return o, fmt.Errorf("%s has %q twice", o.Verb, name)
		}
		o.Named = append(o.Named, Named{name, number})
	}
	if n := len(o.About); form.About >= 0 && n != form.About || form.About < 0 && (n < 1 || n > maxAbout) {
		return o, fmt.Errorf("%s is about %d numbers; it has %d", o.Verb, form.About, n)
	}
	return o, nil
}

// Shrink drops operations of a history, and then drops named numbers or makes them smaller, as long as it fails.
func Shrink(h History, fails func(History) bool) History {
	for size := (len(h) + 1) / 2; size > 0; {
		dropped := false
		for at := 0; at < len(h); {
			if less := slices.Concat(h[:at], h[min(at+size, len(h)):]); fails(less) {
				h, dropped = less, true
				continue
			}
			at += size
		}
		if !dropped {
			size /= 2
		}
	}
	for i := range h {
		for k := 0; k < len(h[i].Named); k++ {
			with := func(named []Named) bool { // replaces the named numbers
				o := h[i]
				o.Named = named
				other := slices.Concat(h[:i], History{o}, h[i+1:])
				if !fails(other) {
					return false
				}
				h = other
				return true
			}
			all := h[i].Named
			if with(slices.Concat(all[:k], all[k+1:])) {
				k--
				continue
			}
			n := all[k].Number
			for _, less := range []int{1, n / 2, n - 1} {
				if named := slices.Clone(all); less > 0 && less < n {
					named[k].Number = less
					if with(named) {
						break
					}
				}
			}
		}
	}
	return h
}

// Kind is a kind of history, and how a test replays one on something new.
type Kind struct {
	Verbs  Verbs
	Random func(r *rand.Rand) History // makes one up
	Run    func(h History) error      // an error, or a panic, is what the history shows
}

// run is Run with a panic as an error.
func (k Kind) run(h History) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return k.Run(h)
}

// Check runs random histories. One that fails is shrunk and printed as a text that [Kind.Replay] takes.
func (k Kind) Check(t *testing.T, n int) {
	t.Helper()
	for range n {
		seed := rand.Uint64()
		h := k.Random(rand.New(rand.NewPCG(seed, 1)))
		err := k.run(h)
		if err == nil {
			continue
		}
		short := Shrink(h, func(h History) bool { return k.run(h) != nil })
		t.Fatalf("seed %d: %v\nof the %d operations, these fail: %v\n\n%s\nSave them as testdata/histories/NAME.txt; TestHistories replays them.",
			seed, err, len(h), k.run(short), short)
	}
}

// Replay runs the histories of testdata/histories, each a test by its file's name. A text must be as [History.String] writes it, behind its
// comments.
func (k Kind) Replay(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("testdata/histories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			h, err := k.Verbs.Parse(string(text))
			if err == nil && !strings.HasSuffix(string(text), h.String()) {
				err = errors.New("history: it is written in another way than histories are printed")
			}
			if err == nil {
				err = k.run(h)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
