package verify

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
)

// faultAtRoot makes the row at the end of the text give an error.
const faultAtRoot = -2

// certain is a chain of two drafts that every rule accepts, as a toy; next is what follows them.
func certain() *toy {
	p := table{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}, {1, 0, 0}} // 0, 1, 2, 0 and so on
	return newToy(p, p, []draft{{Root, 0, 1}, {0, 1, 1}})
}

// drawsPlainly reports whether a rule asks for the draws of plain decoding, of trees of draws too.
func drawsPlainly(t *testing.T, r Rule) bool {
	return errors.Is(certain().run(t, r.New(), nil).err, errChoice)
}

// sameDistribution are the rules of that grade.
func sameDistribution() []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool { return r.Grade != SameDistribution })
}

// TestCertain expects every rule to accept the drafts that the target is certain of, whatever the numbers are.
func TestCertain(t *testing.T) {
	for _, rule := range Rules() {
		for _, u := range []float64{1e-300, 0.5, math.Nextafter(1, 0)} {
			y := certain()
			y.later = u
			var script []float64
			if drawsPlainly(t, rule) {
				script = []float64{0, 1, 2}
			}
			r := y.run(t, rule.New(), script)
			if r.err != nil || !slices.Equal(r.accepted, []token.ID{0, 1}) || r.left != nil && !slices.Equal(r.left, []float64{0, 0, 1}) ||
				r.left == nil && r.next != 2 {
				t.Errorf("%s, numbers of %v: %+v", rule.Name, u, r)
			}
		}
	}
}

// TestFaults expects a row's error where the rule gets there, with the drafts that were accepted before it.
func TestFaults(t *testing.T) {
	for _, rule := range Rules() {
		for _, c := range []struct {
			fault token.ID
			want  []token.ID
		}{{faultAtRoot, nil}, {0, []token.ID{0}}, {1, []token.ID{0, 1}}} {
			y := certain()
			y.fault = c.fault
			var script []float64 // drafts pass whatever the numbers are
			if drawsPlainly(t, rule) {
				script = []float64{0, 1, 2}
			}
			r := y.run(t, rule.New(), script)
			if !errors.Is(r.err, errRow) || !slices.Equal(r.accepted, c.want) {
				t.Errorf("%s, the row of %d fails: %+v, want %v accepted", rule.Name, c.fault, r, c.want)
			}
		}
	}
}

// TestFaultsBehindRejected expects no error from the row of a draft that is rejected: plain decoding does not get there.
func TestFaultsBehindRejected(t *testing.T) {
	for _, rule := range Rules() {
		y := newToy(steady(0.5, 0.5, 0), steady(0, 0.5, 0.5), []draft{{Root, 2, 1}})
		y.fault = 2
		var script []float64
		if drawsPlainly(t, rule) {
			script = []float64{1}
		}
		r := y.run(t, rule.New(), script)
		if r.err != nil || len(r.accepted) > 0 {
			t.Errorf("%s: %+v", rule.Name, r)
		}
	}
}

// TestNoDrafts expects a draw from the target where there are no drafts.
func TestNoDrafts(t *testing.T) {
	for _, rule := range Rules() {
		for _, q := range []table{nil, steady(toyQ...)} {
			r := newToy(steady(toyP...), q, nil).run(t, rule.New(), []float64{1})
			plain := r.left == nil && r.next == 1 // as plain decoding draws
			picked := slices.EqualFunc(r.left, toyP, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 })
			if wantPlain := drawsPlainly(t, rule) || q == nil && rule.Name != "typical"; r.err != nil || plain != wantPlain || picked == wantPlain {
				t.Errorf("%s, drafts from %v: %+v", rule.Name, q, r)
			}
		}
	}
}

// TestImpossible expects no rule to give a token that the target never draws, and no rule to find one where the model
// gives nothing at all.
func TestImpossible(t *testing.T) {
	for _, rule := range append(sameDistribution(), Typical) {
		for _, u := range []float64{math.SmallestNonzeroFloat64, 1e-300, 0.5, math.Nextafter(1, 0)} {
			for _, q := range [][]float64{{0, 0, 1}, {1e-9, 0, 1}, {0.5, 0.5 - 1e-13, 1e-13}} {
				y := newToy(steady(0.5, 0.5, 0), steady(q...), []draft{{Root, 2, 1}})
				y.later = u
				r := y.run(t, rule.New(), nil)
				if r.err != nil || len(r.accepted) > 0 || r.left == nil || r.left[2] != 0 || math.Abs(r.left[0]+r.left[1]-1) > 1e-9 {
					t.Errorf("%s, drafts from %v, numbers of %v: %+v", rule.Name, q, u, r)
				}
			}
		}
		y := newToy(steady(0, 0, 0), steady(toyQ...), []draft{{Root, 2, 1}})
		if r := y.run(t, rule.New(), nil); !errors.Is(r.err, errNoMass) || r.next != token.None {
			t.Errorf("%s, no probabilities: %+v", rule.Name, r)
		}
	}
}

// TestEqual expects a draft from the target's own distribution to be accepted whatever the number is.
func TestEqual(t *testing.T) {
	for _, rule := range sameDistribution() {
		y := newToy(steady(0.25, 0.5, 0.25), steady(0.25, 0.5, 0.25), []draft{{Root, 1, 1}})
		if r := y.run(t, rule.New(), nil); !slices.Equal(r.accepted, []token.ID{1}) {
			t.Errorf("%s: %+v", rule.Name, r)
		}
	}
	nearly(t, "chance of a prefix behind which the distributions are equal", chance(1, toyP, Distribution{over(toyP).IDs, []float32{0.6, 0.3, 0.1}}), 1)
}

// TestRefusals expects errors where drafts are not what a rule needs.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		rule   Rule
		drafts []draft
		want   string
	}{
		{Block, []draft{{Root, 0, 1}, {Root, 1, 2}}, "verify: block: node -1: it has 2 drafts"},
		{Reject, []draft{{Root, 0, 5}, {Root, 1, 2}}, "verify: reject: draft 0: it stands for 2 draws"},
		{KSEQ, []draft{{Root, 0, 5}}, "verify: kseq: node -1: its drafts stand for the draws 101"},
		{KSEQ, []draft{{Root, 0, 1}, {Root, 1, 0}}, "verify: kseq: draft 1: it stands for the draws 0"},
		{KSEQ, []draft{{Root, 0, 1}, {Root, 1, 3}}, "verify: kseq: draft 1: it stands for the draws 11"},
		{KSEQ, []draft{{Root, 2, 1}}, "verify: kseq: draft 0: token 2 has probability 0"},
		{SpecInfer, []draft{{Root, 0, 5}}, "verify: specinfer: node -1: its drafts stand for the draws 101"},
		{SpecInfer, []draft{{Root, 2, 1}}, "verify: specinfer: draft 0: token 2 has probability 0"},
		{Traversal, []draft{{Root, 0, 5}, {Root, 1, 2}}, "verify: traversal: draft 0: it stands for 2 draws"},
		{TraversalIID, []draft{{Root, 0, 5}}, "verify: traversal-iid: node -1: its drafts stand for the draws 101"},
		{TraversalIID, []draft{{Root, 2, 1}}, "verify: traversal-iid: draft 0: token 2 has probability 0"},
	} {
		y := newToy(steady(0.1, 0.1, 0.8), steady(0.5, 0.5, 0), c.drafts)
		r := y.run(t, c.rule.New(), nil)
		if r.err == nil || !strings.HasPrefix(r.err.Error(), c.want) || len(r.accepted) > 0 {
			t.Errorf("%s: %+v, want an error that begins with %q", c.rule.Name, r, c.want)
		}
	}
}

// TestUndrawn expects rules that need no counts to pass over what was not drawn.
func TestUndrawn(t *testing.T) {
	for _, c := range []struct {
		rule   Rule
		drafts []draft
	}{
		{Block, []draft{{Root, 2, 1}}},  // of no probability in q
		{Block, []draft{{Root, 0, 0}}},  // no draw
		{Reject, []draft{{Root, 2, 1}}}, // of no probability in q
		{Reject, []draft{{Root, 0, 0}}}, // no draw
		{Reject, []draft{{Root, 0, 2}}}, // the first draw is missing
		{Traversal, []draft{{Root, 2, 1}}},
		{Traversal, []draft{{Root, 0, 0}}},
		{Traversal, []draft{{Root, 0, 2}}},
	} {
		y := newToy(steady(0.1, 0.1, 0.8), steady(0.5, 0.5, 0), c.drafts)
		y.later = 1e-300
		if r := y.run(t, c.rule.New(), nil); r.err != nil || len(r.accepted) > 0 || !slices.Equal(r.left, []float64{0.1, 0.1, 0.8}) {
			t.Errorf("%s, %v: %+v", c.rule.Name, c.drafts, r)
		}
	}
}

func TestTypical(t *testing.T) {
	nearly(t, "threshold", usual.threshold(toyP), 0.09)
	for _, c := range []struct { // the worked numbers of the published constants
		name string
		p    []float64
		want float64
	}{
		{"4 tokens alike", slices.Repeat([]float64{1.0 / 4}, 4), 0.0750},
		{"16 tokens alike", slices.Repeat([]float64{1.0 / 16}, 16), 0.01875},
		{"a sure token", []float64{0.9, 0.1}, 0.09},
	} {
		if got := usual.threshold(c.p); math.Abs(got-c.want) > 5e-6 {
			t.Errorf("threshold of %s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := (typicality{floor: 0.3, share: 0.09}).threshold(toyP); math.Abs(got-0.0367) > 5e-5 {
		t.Errorf("threshold with the values swapped: %v, want 0.0367", got)
	}
	one := []float64{0, 1, 0}
	usual.truncate(one)
	if !slices.Equal(one, []float64{0, 1, 0}) {
		t.Errorf("the distribution of one token becomes %v", one)
	}
	for _, c := range []struct {
		name   string
		p      []float64
		drafts []draft
		want   []token.ID
		left   []float64
	}{
		{"the likelier of two drafts", []float64{0.2, 0.75, 0.05}, []draft{{Root, 0, 0}, {Root, 1, 0}}, []token.ID{1}, []float64{0.2 / 0.95, 0.75 / 0.95, 0}},
		{"a draft at the threshold", []float64{0.91, 0.09, 0}, []draft{{Root, 1, 0}}, nil, []float64{0.91, 0.09, 0}},
		{"an unlikely draft", []float64{0.85, 0.1, 0.05}, []draft{{Root, 2, 0}}, nil, []float64{0.85 / 0.95, 0.1 / 0.95, 0}},
		{"the longer path", []float64{0.2, 0.75, 0.05}, []draft{{Root, 1, 0}, {Root, 0, 0}, {1, 0, 0}}, []token.ID{0, 0}, []float64{0.2 / 0.95, 0.75 / 0.95, 0}},
	} {
		r := newToy(steady(c.p...), nil, c.drafts).run(t, Typical.New(), nil)
		if !slices.Equal(r.accepted, c.want) {
			t.Errorf("%s: %v is accepted, want %v", c.name, r.accepted, c.want)
		}
		for i := range c.left {
			nearly(t, c.name+": what follows", r.left[i], c.left[i])
		}
	}
	y := newToy(steady(toyP...), nil, []draft{{Root, 0, 0}})
	y.lost = losses["no space"]
	if r := y.run(t, Typical.New(), nil); len(r.accepted) > 0 || r.left == nil {
		t.Errorf("a draft that was not run: %+v", r)
	}
}

// TestFind expects every rule under its name, with all that a user and the engine read of it.
func TestFind(t *testing.T) {
	var names []string
	for _, r := range Rules() {
		names = append(names, r.Name)
		found, err := Find(r.Name)
		if err != nil || found.Name != r.Name {
			t.Errorf("%s: %v", r.Name, err)
		}
		if r.Paper == "" || r.New == nil || !slices.Contains(grades, r.Grade) {
			t.Errorf("%s: incomplete: %+v", r.Name, r)
		}
	}
	for name, want := range map[string]string{
		"match:beta=1":                        `verify: rule match takes no options; "beta=1" are given`,
		"threshold:beta=0":                    `verify: threshold: beta is "0"; it must be a whole number from 1 on`,
		"threshold:beta=2,tau=-1":             `verify: threshold: tau is "-1"; it must be a number from 0 on, or inf`,
		"threshold:tau=NaN":                   `verify: threshold: tau is "NaN"; it must be a number from 0 on, or inf`,
		"threshold:":                          `verify: threshold: option "" is not known; use beta=N,tau=X`,
		"threshold:beta=1,gamma=2":            `verify: threshold: option "gamma=2" is not known; use beta=N,tau=X`,
		"threshhold:beta=1,tau=0":             `did you mean "threshold"?`,
		"threshold:beta=99999999999999999999": "it must be a whole number",
	} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := Find("none"); err == nil || !strings.HasSuffix(err.Error(), "use one of: "+strings.Join(names, ", ")) {
		t.Errorf("a rule that is not known: %v", err)
	}
}

// TestAllocations expects no allocation once a rule has seen a round of the size.
func TestAllocations(t *testing.T) {
	tree := []draft{{Root, 1, 1}, {Root, 0, 2}, {0, 2, 1}, {0, 1, 2}}
	chain := []draft{{Root, 1, 1}, {0, 2, 1}, {1, 0, 1}}
	for _, rule := range Rules() {
		for _, u := range []float64{0.01, 0.99} {
			y := newToy(steady(toyP...), steady(toyQ...), tree)
			if rule.Needs.Chain {
				y.drafts = chain
			}
			y.later, y.script = u, []float64{1, 1, 1, 1}
			if !drawsPlainly(t, rule) {
				y.script = nil
			}
			a, out := rule.New(), Outcome{}
			var err error
			n := testing.AllocsPerRun(100, func() {
				y.reset()
				err = a.Accept(y, &out)
			})
			if n > 0 || err != nil {
				t.Errorf("%s, numbers of %v: %v allocations a round, error %v", rule.Name, u, n, err)
			}
		}
	}
}

// TestReadme holds the table of README.md to the rules; with GROVE_UPDATE=1 it writes it.
func TestReadme(t *testing.T) {
	const path, begin, end = "README.md", "<!-- rules -->\n\n", "\n<!-- end -->"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| rule | paper | drafts | grade | options |\n|---|---|---|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", r.Name, r.Paper, takes(r.Needs), r.Grade, r.Options)
	}
	before, rest, found := strings.Cut(string(b), begin)
	_, behind, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s has no table of rules", path)
	}
	switch want := before + begin + table.String() + end + behind; {
	case want == string(b):
	case os.Getenv("GROVE_UPDATE") == "1":
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: run GROVE_UPDATE=1 go test -run TestReadme ./internal/verify\n%s", path, cmp.Diff(want, string(b)))
	}
}

// takes says which drafts meet what a rule needs.
func takes(n Properties) string {
	switch {
	case n.Chain:
		return "a chain of draws"
	case n.WithReplacement:
		return "chains of independent draws that share their beginnings"
	case n.Distributions:
		return "a tree of draws without replacement"
	}
	return "any tree"
}
