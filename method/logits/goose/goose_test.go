package goose

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/compute"
	"grove/method"
	"grove/text/token"
)

func TestHarmonic(t *testing.T) {
	for _, c := range []struct {
		shares, places int
		want           []int
	}{
		{15, 20, append(append([]int{4, 2}, slices.Repeat([]int{1}, 9)...), make([]int, 9)...)},
		{10, 4, []int{4, 2, 1, 1}},
		{1, 3, []int{1, 0, 0}},
		{5, 1, []int{5}},
		{0, 2, []int{0, 0}},
		{5, 0, nil},
	} {
		if got := harmonic(nil, c.shares, c.places); !cmp.Equal(got, c.want) {
			t.Errorf("%d over %d: %v, want %v", c.shares, c.places, got, c.want)
		}
	}
}

// TestPlan has the paper's figures, for its own budget, and their like for the one that is used.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		budget           int
		confidence, came float64
		total, spine     int
	}{
		{60, 0, 0.5, 60, 30},
		{60, confidenceOf(4, false), 0.1, 72, 29},
		{60, 1, 0.5, 100, 100},
		{60, 1, 0, 100, 100},
		{60, 0, 0.3, 60, 18},
		{60, 0, 0.1, 60, 9},
		{24, 0, 0.5, 24, 12},
		{24, 1, 0.5, 40, 40},
	} {
		if total, spine := plan(c.budget, c.confidence, c.came); total != c.total || spine != c.spine {
			t.Errorf("%d nodes, confidence %v, %v came true: %d and %d; want %d and %d",
				c.budget, c.confidence, c.came, total, spine, c.total, c.spine)
		}
	}
}

func TestConfidence(t *testing.T) {
	for _, c := range []struct {
		length int
		sure   bool
		want   float64
	}{{0, false, 0}, {0, true, 0}, {1, true, 1}, {4, false, 0.3}, {8, false, 0.7}, {14, false, 0.8}, {20, false, 0.9}, {100, false, 0.9}} {
		if got := confidenceOf(c.length, c.sure); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%d tokens, sure %v: %v, want %v", c.length, c.sure, got, c.want)
		}
	}
}

func open(t *testing.T, vocabulary int) *drafter {
	t.Helper()
	info, err := method.Find("goose")
	if err != nil {
		t.Fatal(err)
	}
	m, err := info.Open(method.Env{Vocabulary: vocabulary})
	if err != nil {
		t.Fatal(err)
	}
	d, err := m.NewDrafter()
	if err != nil {
		t.Fatal(err)
	}
	return d.(*drafter)
}

func tree(t *testing.T, d *drafter) *method.Tree {
	t.Helper()
	tree := method.NewTree(128, 100)
	tree.Reset(64, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func begin(t *testing.T, d *drafter, text ...token.ID) {
	t.Helper()
	if err := d.Begin(method.Text{Prompt: text}); err != nil {
		t.Fatal(err)
	}
}

// saw makes successors known, each half as likely as the one before, whatever comes before the token.
func saw(d *drafter, id token.ID, next ...token.ID) {
	o := method.Outcome{ID: id, Parent: -1, Accepted: true}
	for i, n := range next {
		o.Top = append(o.Top, compute.TopEntry{ID: n, Logit: -0.7 * float32(i)})
	}
	d.known.Learn([]method.Outcome{o}, token.None)
}

// TestRoutes: a spine alone, branches alone, both, and neither.
func TestRoutes(t *testing.T) {
	d := open(t, 100)
	begin(t, d)
	if n := tree(t, d).Len(); n != 0 {
		t.Errorf("no text: %d guesses", n)
	}
	begin(t, d, 1, 2, 3)
	if n := tree(t, d).Len(); n != 0 {
		t.Errorf("nothing repeats, nothing is known: %d guesses", n)
	}
	begin(t, d, 1, 2, 3, 4, 5, 1, 2, 3)
	if n := tree(t, d); n.Len() != 5 || n.Nodes()[4].Depth != 5 || n.Nodes()[4].ID != 3 {
		t.Errorf("a spine: %v", n.Nodes())
	}
	saw(d, 3, 9, 8, 4)
	saw(d, 9, 7)
	if n := tree(t, d); n.Len() <= 5 || n.Nodes()[4].Depth != 5 || n.Nodes()[5].ID != 9 || n.Nodes()[5].Parent != method.Root {
		t.Errorf("a spine with branches: %v", n.Nodes())
	} else if _, ok := n.Child(5, 7); !ok {
		t.Errorf("the branch does not go on: %v", n.Nodes())
	}
	begin(t, d, 6, 3)
	n := tree(t, d)
	if at, ok := n.Child(method.Root, 9); !ok || n.Len() < 4 {
		t.Errorf("branches: %v", n.Nodes())
	} else if _, ok := n.Child(at, 7); !ok {
		t.Errorf("the branch does not go on: %v", n.Nodes())
	}
}

// TestSure expects a place that was always followed by the same token to make a bare spine, as long as that holds, and
// one that was not to leave room for branches.
func TestSure(t *testing.T) {
	d := open(t, 100)
	period := []token.ID{1, 2, 3, 4, 5, 6}
	begin(t, d, slices.Repeat(period, 8)...)
	for id := range token.ID(10) {
		saw(d, id, 50, 51, 52, 53)
	}
	n := tree(t, d)
	for i, node := range n.Nodes() {
		if int(node.Parent) != i-1 || node.ID != period[i%6] {
			t.Fatalf("node %d: %+v", i, node)
		}
	}
	if n.Len() != 40 {
		t.Errorf("a spine of %d, want 40", n.Len())
	}
	mixed := append(slices.Clone(period), 7)
	begin(t, d, slices.Concat(period, mixed, period, mixed, period)...)
	most, _ := plan(budget, 0.9, d.came)
	if n = tree(t, d); n.Len() == 0 || n.Len() >= most {
		t.Errorf("a place with several successors: %d guesses", n.Len())
	}
	if !slices.ContainsFunc(n.Nodes(), func(g method.Node) bool { return g.ID == 50 }) {
		t.Errorf("no branch: %v", n.Nodes())
	}
}

// TestCame expects the average to follow what of spines comes true: all, nothing, and all that was run.
func TestCame(t *testing.T) {
	d := open(t, 100)
	begin(t, d, 1, 2, 3, 4, 5, 1, 2, 3)
	for _, c := range []struct {
		ids  []token.ID
		want float64
	}{
		{[]token.ID{4, 5, 1, 2, 3, 4}, 0.5*0.7 + 0.3}, // all five
		{[]token.ID{5}, 0.65*0.7 + 0.3},               // all that was run
	} {
		tree(t, d)
		d.Extend(c.ids)
		if d.came < c.want-1e-9 || d.came > c.want+1e-9 {
			t.Errorf("after %v: %v, want %v", c.ids, d.came, c.want)
		}
	}
	tree(t, d)
	before, n := d.came, len(d.spine)
	d.Extend([]token.ID{d.spine[0], 99})
	if want := 0.7*before + 0.3/float64(n); n < 2 || d.came < want-1e-9 || d.came > want+1e-9 {
		t.Errorf("one of %d: %v, want %v", n, d.came, want)
	}
	before = d.came
	tree(t, d)
	d.Extend([]token.ID{1})
	if d.came != before {
		t.Error("a round without a spine changed the average")
	}
}

// TestTogether: a tree accepts at least what its spine accepts alone, and at least what its branches accept alone; it
// keeps to its budget.
func TestTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	d := open(t, 8)
	both := 0
	for range 2000 {
		text := make([]token.ID, 20+rng.IntN(60))
		for i := range text {
			if i > 8 && rng.IntN(4) > 0 {
				text[i] = text[i-7]
			} else {
				text[i] = token.ID(rng.IntN(8))
			}
		}
		at := 10 + rng.IntN(len(text)-10)
		begin(t, d, text[:at]...)
		saw(d, token.ID(rng.IntN(8)), token.ID(rng.IntN(8)), token.ID(rng.IntN(8)))
		n := tree(t, d)
		if most := int(extended(budget)); n.Len() > most {
			t.Fatalf("%d guesses, more than %d", n.Len(), most)
		}
		follow := func(allowed func(node int) bool) (accepted int) {
			node, ok := method.Root, true
			for _, id := range text[at:] {
				if node, ok = n.Child(node, id); !ok || !allowed(node) {
					break
				}
				accepted++
			}
			return accepted
		}
		spine := len(d.spine)
		all := follow(func(int) bool { return true })
		alone := follow(func(node int) bool { return node < spine })
		branches := follow(func(node int) bool { return node >= spine })
		if all < alone || all < branches {
			t.Fatalf("%d accepted; the spine alone %d, branches alone %d", all, alone, branches)
		}
		if all > alone {
			both++
		}
	}
	if both == 0 {
		t.Error("branches never helped")
	}
}
