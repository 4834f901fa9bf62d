package heads

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

const medusaWidth = 4

// medusaScripted is a module of so many heads: head k gives the (k+1)-th, second best the (k+2)-th, and so on, of the tokens behind the one that its state names.
func medusaScripted(heads int) (*method.Module, *growtest.Model) {
	m := growtest.Cycle(20, 1)
	cycle := m.Next
	m.Dims.Width, m.Dims.Layers = medusaWidth, heads
	m.Next = func(path []token.ID, r forest.Row) []float32 {
		k := r.To - 1
		if len(path) != 1 || len(r.Vector) != medusaWidth || r.Mix != nil || r.Skip != forest.LayerRange(0, k) {
			panic("no row of a head")
		}
		return cycle([]token.ID{(token.ID(r.Vector[0]) + token.ID(k)) % 20}, r)
	}
	return &method.Module{Model: m, Module: forest.Module{Family: "medusa", Heads: heads}}, m
}

// state is the feature of a token: the state of a target that finds the next token likeliest.
func state(id token.ID) []float32 { return []float32{float32(id) + 1, 0, 0, 0} }

func medusaBegin(t *testing.T, module *method.Module, drafts int, p sample.Params, prompt ...token.ID) (*growtest.Text, func(int) []float32) {
	t.Helper()
	x := &growtest.Text{Drafter: growtest.Drafter(t, fmt.Sprintf("medusa:n=%d", drafts), method.Env{Vocabulary: 20, Modules: []*method.Module{module}})}
	x.Noise.Sampling = p
	x.Begin(t, prompt...)
	of := func(place int) []float32 { return state(x.IDs()[place]) }
	x.AddRan(0, of)
	return x, of
}

// TestMedusaDrafts follows a text by the last known state, which is that of the token before the last one.
func TestMedusaDrafts(t *testing.T) {
	module, m := medusaScripted(3)
	x, of := medusaBegin(t, module, 4, sample.Params{}, 3, 4, 5)
	// Behind 4, whose state names 5, the heads expect 6, 7, 8.
	paths := func(tree *method.Tree) (all [][]token.ID) {
		for _, n := range tree.Nodes() {
			var path []token.ID
			if n.Parent != method.Root {
				path = slices.Clone(all[n.Parent])
			}
			all = append(all, append(path, n.ID))
		}
		return all
	}
	if diff := cmp.Diff([][]token.ID{{6}, {6, 7}, {6, 7, 8}, {7}}, paths(x.Draft(t, 9))); diff != "" {
		t.Error(diff)
	}
	if m.Calls != 1 {
		t.Errorf("%d passes, want one of all heads", m.Calls)
	}
	x.AddRan(2, of, 6, 7) // the step ran 5 and 6
	if got := growtest.IDs(x.Draft(t, 1)); !slices.Equal(got, []token.ID{8, 9, 10, 11}) {
		t.Errorf("where one token fits: %v", got)
	}
	x.Add(8) // nothing was run
	if got := x.Draft(t, 9); got.Len() != 0 {
		t.Errorf("%v behind a token whose feature is not known", growtest.IDs(got))
	}
	x.AddRan(4, of, 9)
	if got := growtest.IDs(x.Draft(t, 9)); !slices.Equal(got[:2], []token.ID{10, 11}) {
		t.Errorf("%v when features are known again", got)
	}
}

// TestNothing begins texts that have no feature to draft from, and passes the module's error on.
func TestNothing(t *testing.T) {
	module, m := medusaScripted(2)
	x, of := medusaBegin(t, module, 63, sample.Params{}, 7)
	if got := x.Draft(t, 9); got.Len() != 0 || m.Calls != 0 {
		t.Errorf("%v behind one token", growtest.IDs(got))
	}
	x.Begin(t, 1, 2, 3)
	if got := x.Draft(t, 9); got.Len() != 0 {
		t.Errorf("%v behind a prompt that the cache gave", growtest.IDs(got))
	}
	x.Begin(t, 5, 6)
	x.Drafter.Committed(method.Update{Rows: []method.RowResult{{ID: 9, Accepted: true}}})
	if got := x.Draft(t, 9); got.Len() != 0 {
		t.Errorf("%v by rows of another text", growtest.IDs(got))
	}
	x.AddRan(0, of)
	x.Ends(t, m)
}

// TestShares holds drafts above temperature 0 to those that the text's noise draws, and their order to how often they are accepted.
func TestShares(t *testing.T) {
	module, _ := medusaScripted(2)
	p := sample.Params{Temperature: 1, Seed: 4}
	x, of := medusaBegin(t, module, 6, p, 3, 4, 5)
	chain, err := sample.NewChain(sample.Settings{Params: p}, 20)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		// The target's logits are the heads'.
		logits := growtest.Cycle(20, 1).Next([]token.ID{x.Last(0)}, forest.Row{})
		want, err := chain.Candidates(make([]sample.Candidate, 1), logits, len(x.IDs()))
		if err != nil {
			t.Fatal(err)
		}
		x.AddRan(len(x.IDs())-1, of, want[0].ID)
		// The state names what the model would say, not what was drawn: the heads draft for that.
		tree := x.Draft(t, 4)
		logits = growtest.Cycle(20, 1).Next([]token.ID{(x.IDs()[len(x.IDs())-2] + 1) % 20}, forest.Row{})
		if want, err = chain.Candidates(want, logits, len(x.IDs())); err != nil {
			t.Fatal(err)
		}
		if first := tree.Nodes()[0]; first.Parent != method.Root || first.ID != want[0].ID {
			t.Fatalf("the first draft is %d, want the draw %d", first.ID, want[0].ID)
		}
	}
}

// TestWorked holds the tree to the example of the paper's construction: shares of ranks by head, best first.
func TestWorked(t *testing.T) {
	shares := [][]float64{{.6, .2, .1}, {.5, .15, .1}, {.4, .1, .05}}
	module, m := medusaScripted(3)
	m.Next = func(_ []token.ID, r forest.Row) []float32 {
		logits := make([]float32, 20)
		left := 1.0
		for rank, p := range shares[r.To-1] {
			logits[3*r.To+rank] = float32(math.Log(p))
			left -= p
		}
		for i := range logits {
			if i < 3*r.To || i >= 3*r.To+3 {
				logits[i] = float32(math.Log(left / 17)) // less than any rank
			}
		}
		return logits
	}
	x, _ := medusaBegin(t, module, 6, sample.Params{}, 1, 2)
	var ranks [][]int
	var sum float64
	p := make([]float64, 6)
	for i, n := range x.Draft(t, 9).Nodes() {
		path, above := []int(nil), 1.0
		if n.Parent != method.Root {
			path, above = slices.Clone(ranks[n.Parent]), p[n.Parent]
		}
		rank := int(n.ID) % 3
		ranks, p[i] = append(ranks, append(path, rank)), above*shares[n.Depth-1][rank]
		sum += p[i]
	}
	if diff := cmp.Diff([][]int{{0}, {0, 0}, {1}, {0, 0, 0}, {1, 0}, {2}}, ranks); diff != "" {
		t.Error(diff)
	}
	for i, want := range []float64{.6, .3, .2, .12, .1, .1} {
		if math.Abs(p[i]-want) > 1e-9 {
			t.Errorf("path %v has probability %v, want %v", ranks[i], p[i], want)
		}
	}
	if math.Abs(sum-1.42) > 1e-9 {
		t.Errorf("%v drafts are expected to be accepted, want 1.42", sum)
	}
}

// TestOption reads the option, and drafts as many tokens.
func TestOption(t *testing.T) {
	info, err := method.Find("medusa:n=07")
	if err != nil || info.Name != "medusa:n=7" || info.Rule.Name != verify.Match.Name || !info.Auto {
		t.Error(info, err)
	}
	module, _ := medusaScripted(3)
	x, _ := medusaBegin(t, module, 7, sample.Params{}, 3, 4, 5)
	if n := x.Draft(t, 9).Len(); n != 7 {
		t.Errorf("%d drafts, want 7", n)
	}
}

// TestBounds holds trees to the published size, and passes to the rows of a step.
func TestBounds(t *testing.T) {
	module, m := medusaScripted(3)
	x, _ := medusaBegin(t, module, 63, sample.Params{}, 3, 4, 5)
	tree := x.Draft(t, 9)
	if tree.Len() != 63 {
		t.Errorf("%d drafts, want 63", tree.Len())
	}
	s := x.Drafter.(method.Sized)
	if most := s.MemoryFor(100, sample.Params{}); most.Logits < 4*3*20 {
		t.Errorf("%+v for the logits of three heads", most)
	}
	if err := x.Drafter.(method.Closer).Close(); err != nil {
		t.Error(err)
	}
	m.Dims.Rows = 2 // a step holds two rows
	x, _ = medusaBegin(t, module, 63, sample.Params{}, 3, 4, 5)
	if got := growtest.PerDepth(x.Draft(t, 9)); len(got) != 2 {
		t.Errorf("%v drafts by depth where a pass has two rows", got)
	}
}
