package logits

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
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
		budget               int
		confidence, accepted float64
		total, spine         int
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
		if total, spine := plan(c.budget, c.confidence, c.accepted); total != c.total || spine != c.spine {
			t.Errorf("%d nodes, confidence %v, %v accepted: %d and %d; want %d and %d",
				c.budget, c.confidence, c.accepted, total, spine, c.total, c.spine)
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

func openGoose(t *testing.T, vocabulary int) (*gooseDrafter, *growtest.Text) {
	t.Helper()
	d := growtest.Drafter(t, "goose", method.Env{Vocabulary: vocabulary})
	return d.(*gooseDrafter), &growtest.Text{Drafter: d}
}

// gooseSaw makes successors known, each half as likely as the one before, whatever precedes the token.
func gooseSaw(d *gooseDrafter, id token.ID, next ...token.ID) {
	o := method.RowResult{ID: id, Parent: -1, Accepted: true}
	for i, n := range next {
		o.Top = append(o.Top, compute.TopEntry{ID: n, Logit: -0.7 * float32(i)})
	}
	d.known.Learn([]method.RowResult{o}, token.None)
}

// TestRoutes: a spine alone, branches alone, both, and neither.
func TestRoutes(t *testing.T) {
	d, x := openGoose(t, 100)
	x.Begin(t)
	if n := x.Draft(t, 64).Len(); n != 0 {
		t.Errorf("no text: %d drafts", n)
	}
	x.Begin(t, 1, 2, 3)
	if n := x.Draft(t, 64).Len(); n != 0 {
		t.Errorf("nothing repeats, nothing is known: %d drafts", n)
	}
	x.Begin(t, 1, 2, 3, 4, 5, 1, 2, 3)
	if n := x.Draft(t, 64); n.Len() != 5 || n.Nodes()[4].Depth != 5 || n.Nodes()[4].ID != 3 {
		t.Errorf("a spine: %v", n.Nodes())
	}
	gooseSaw(d, 3, 9, 8, 4)
	gooseSaw(d, 9, 7)
	if n := x.Draft(t, 64); n.Len() <= 5 || n.Nodes()[4].Depth != 5 || n.Nodes()[5].ID != 9 || n.Nodes()[5].Parent != method.Root {
		t.Errorf("a spine with branches: %v", n.Nodes())
	} else if _, ok := n.Child(5, 7); !ok {
		t.Errorf("the branch does not go on: %v", n.Nodes())
	}
	x.Begin(t, 6, 3)
	n := x.Draft(t, 64)
	if at, ok := n.Child(method.Root, 9); !ok || n.Len() < 4 {
		t.Errorf("branches: %v", n.Nodes())
	} else if _, ok := n.Child(at, 7); !ok {
		t.Errorf("the branch does not go on: %v", n.Nodes())
	}
}

// TestSure expects a place that was always followed by the same token to make a bare spine, as long as that holds, and
// one that was not to leave room for branches.
func TestSure(t *testing.T) {
	d, x := openGoose(t, 100)
	period := []token.ID{1, 2, 3, 4, 5, 6}
	x.Begin(t, slices.Repeat(period, 8)...)
	for id := range token.ID(10) {
		gooseSaw(d, id, 50, 51, 52, 53)
	}
	n := x.Draft(t, 64)
	for i, node := range n.Nodes() {
		if int(node.Parent) != i-1 || node.ID != period[i%6] {
			t.Fatalf("node %d: %+v", i, node)
		}
	}
	if n.Len() != 40 {
		t.Errorf("a spine of %d, want 40", n.Len())
	}
	mixed := append(slices.Clone(period), 7)
	x.Begin(t, slices.Concat(period, mixed, period, mixed, period)...)
	most, _ := plan(budget, 0.9, d.accepted)
	if n = x.Draft(t, 64); n.Len() == 0 || n.Len() >= most {
		t.Errorf("a place with several successors: %d drafts", n.Len())
	}
	if !slices.ContainsFunc(n.Nodes(), func(n method.Node) bool { return n.ID == 50 }) {
		t.Errorf("no branch: %v", n.Nodes())
	}
}

// TestAccepted expects the average to follow what of spines is accepted: all, nothing, and all that was run.
func TestAccepted(t *testing.T) {
	d, x := openGoose(t, 100)
	x.Begin(t, 1, 2, 3, 4, 5, 1, 2, 3)
	for _, c := range []struct {
		ids  []token.ID
		want float64
	}{
		{[]token.ID{4, 5, 1, 2, 3, 4}, 0.5*0.7 + 0.3}, // all five
		{[]token.ID{5}, 0.65*0.7 + 0.3},               // all that was run
	} {
		x.Draft(t, 64)
		x.Add(c.ids...)
		if d.accepted < c.want-1e-9 || d.accepted > c.want+1e-9 {
			t.Errorf("after %v: %v, want %v", c.ids, d.accepted, c.want)
		}
	}
	x.Draft(t, 64)
	before, n := d.accepted, len(d.spine)
	x.Add(d.spine[0], 99)
	if want := 0.7*before + 0.3/float64(n); n < 2 || d.accepted < want-1e-9 || d.accepted > want+1e-9 {
		t.Errorf("one of %d: %v, want %v", n, d.accepted, want)
	}
	before = d.accepted
	x.Draft(t, 64)
	x.Add(1)
	if d.accepted != before {
		t.Error("a round without a spine changed the average")
	}
}

// TestTogether: a tree accepts at least what its spine accepts alone, and at least what its branches accept alone; it
// keeps to its budget.
func TestTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	d, x := openGoose(t, 8)
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
		x.Begin(t, text[:at]...)
		gooseSaw(d, token.ID(rng.IntN(8)), token.ID(rng.IntN(8)), token.ID(rng.IntN(8)))
		n := x.Draft(t, 64)
		if most := int(extended(budget)); n.Len() > most {
			t.Fatalf("%d drafts, more than %d", n.Len(), most)
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
