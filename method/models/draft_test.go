package models

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/sample"
	"grove/internal/stat"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
	"grove/method/grow"
)

// openDraft opens a method's drafter and begins a text.
func openDraft(t *testing.T, name string, m *growtest.Model, p sample.Params, prompt ...token.ID) *growtest.Text {
	t.Helper()
	d := growtest.Drafter(t, name, method.Env{Vocabulary: m.Dims.Vocabulary, Draft: m})
	x := &growtest.Text{Drafter: d}
	x.Noise.Sampling = p
	x.Begin(t, prompt...)
	return x
}

// branch returns the sequence of the draft model, which is open once the text is drafted for.
func branch(x *growtest.Text) *growtest.Sequence {
	return x.Drafter.(*grow.Drafter).Branch().Trunk.(*growtest.Sequence)
}

func TestDraftNeeds(t *testing.T) {
	for _, s := range all {
		info, err := method.Find(s.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := info.CheckNeeds(method.Env{Vocabulary: 9}); !errors.Is(err, method.ErrNeeds) {
			t.Errorf("%s without a draft model: %v", s.name, err)
		}
	}
}

// TestGrowth holds the trees of a draft model that ranks tokens clearly to their shapes.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		name   string
		factor float64 // how clearly
		depth  int
		want   []int // drafts a level
	}{
		{"draft-chain", 2, 64, slices.Repeat([]int{1}, grow.Depth)},
		{"draft-chain", 2, 3, []int{1, 1, 1}},
		{"draft-fixed", 2, 64, []int{3, 6, 6, 6}},
		{"draft-fixed", 2, 2, []int{3, 6}},
		{"draft", 2, 3, []int{4, 16, 64}}, // time costs nothing: all is read, four nodes a pass
		{"draft-block", 2, 4, []int{1, 1, 1, 1}},
		{"draft-rsd", 0.1, 3, []int{3, 6, 6}},
		{"draft-traversal", 0.1, 3, []int{3, 6, 6}},
		{"draft-specinfer", 0, 9, []int{3, 3, 3}},
		{"draft-rsd-s", 0.1, 4, []int{4, 4, 4, 4}},
		{"draft-dyspec-q", 50, 4, []int{1, 1, 1, 1}}, // a distribution of one token makes a chain
		{"draft-dyspec-levels", 50, 4, []int{1, 1, 1, 1}},
		{"draft-dyspec-q:n=3", 50, 9, []int{1, 1, 1}},
		{"draft-sequoia:n=7", 0.1, 9, []int{2, 2, 1, 1, 1}},
	} {
		p := sample.Params{}
		if info, _ := method.Find(c.name); info.Grade == method.SameDistribution {
			p = sample.Params{Temperature: 1, Seed: 1}
		}
		x := openDraft(t, c.name, growtest.Cycle(12, c.factor), p, 1, 2, 3)
		if got := growtest.PerDepth(x.Draft(t, c.depth)); !cmp.Equal(got, c.want) {
			t.Errorf("%s, %d deep: %v drafts, want %v", c.name, c.depth, got, c.want)
		}
	}
	x := openDraft(t, "draft-chain", growtest.Cycle(10, 1), sample.Params{}, 4, 7)
	got := growtest.IDs(x.Draft(t, 5))
	if want := []token.ID{8, 9, 0, 1, 2}; !cmp.Equal(got, want) {
		t.Errorf("the likeliest behind 7: %v, want %v", got, want)
	}
	x = openDraft(t, "draft", growtest.Cycle(10, 1), sample.Params{})
	if got := x.Draft(t, 5).Len(); got != 0 {
		t.Errorf("%d drafts behind no text", got)
	}
}

// TestUniformSlots expects DySpec to draw nearly breadth-first where all tokens are as likely, and places below the
// least value to stay empty.
func TestUniformSlots(t *testing.T) {
	x := openDraft(t, "draft-dyspec-levels", growtest.Cycle(4, 0), sample.Params{Temperature: 1, Seed: 3}, 1)
	tree := x.Draft(t, 64)
	// 4 tokens of 1/4 each; behind each 4 of 1/16; 1/64 is below the least chance: but a place is judged before its
	// draft is drawn, and so the first behind a node of 1/16 is drawn.
	if got := growtest.PerDepth(tree); got[0] != 4 || got[1] != 16 || len(got) != 3 {
		t.Errorf("%v drafts a level", got)
	}
	x.Begin(t, 1)
	tree = method.NewTree(128, 1000)
	tree.Floor = 0.3
	tree.Reset(64, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	// Chances 1, 3/4, 1/2 are above the floor and 1/4 is not, nor is that of any node.
	if got := growtest.PerDepth(tree); !cmp.Equal(got, []int{3}) {
		t.Errorf("with a floor of 0.3: %v drafts a level", got)
	}
}

// TestDrawn expects draws to have the distribution that they were drawn from, each token at most once, and their number.
func TestDrawn(t *testing.T) {
	for _, name := range []string{"draft-block", "draft-rsd", "draft-rsd-s", "draft-traversal", "draft-dyspec", "draft-dyspec-q", "draft-dyspec-levels", "draft-sequoia"} {
		x := openDraft(t, name, growtest.Cycle(12, 0.3), sample.Params{Temperature: 0.9, TopK: 5, Seed: 2}, 1, 2, 3)
		tree := x.Draft(t, 6)
		if tree.Len() == 0 || !tree.Sampled() {
			t.Fatalf("%s: %d drafts", name, tree.Len())
		}
		for node := method.Root; node < tree.Len(); node++ {
			q := tree.DraftDistribution(node)
			children, seen := tree.Children(nil, node), []token.ID(nil)
			for k, at := range children {
				n := tree.Nodes()[at]
				if q.Of(n.ID) <= 0 || slices.Contains(seen, n.ID) || n.Samples != 1<<k {
					t.Errorf("%s: draw %d behind %d: %+v is not drawn from the distribution there, or twice", name, k, node, n)
				}
				seen = append(seen, n.ID)
			}
			sum := 0.0
			for _, p := range q.P {
				sum += float64(p)
			}
			if len(children) > 0 && (len(q.IDs) != 5 || math.Abs(sum-1) > 1e-6) {
				t.Errorf("%s: a distribution of %d tokens that sums to %v", name, len(q.IDs), sum)
			}
		}
	}
}

// TestCatchUp: accepted rows stay, others are dropped, and tokens of rounds without a draft are run later.
func TestCatchUp(t *testing.T) {
	m := growtest.Cycle(10, 2)
	x := openDraft(t, "draft-chain", m, sample.Params{}, 1, 2, 3)
	ran := func(want ...token.ID) {
		t.Helper()
		if !cmp.Equal(m.Ran, want) {
			t.Errorf("the draft model ran %v, want %v", m.Ran, want)
		}
		m.Ran = nil
	}
	x.Draft(t, 4)
	ran(1, 2, 3, 4, 5, 6)
	x.Add(4, 5, 9) // two of four drafts, and another token
	x.Draft(t, 2)
	ran(9, 0)
	if want := []token.ID{1, 2, 3, 4, 5, 9}; !cmp.Equal(branch(x).Trunk, want) {
		t.Errorf("the trunk is %v, want %v", branch(x).Trunk, want)
	}
	x.Add(0) // the last token is run again: its logits are gone
	x.Draft(t, 2)
	ran(0, 1)
	x.Add(7, 7)
	x.Add(7) // without a draft in between
	x.Draft(t, 1)
	ran(7, 7, 7)
	x.Add(8, 9, 0, 1, 2, 3) // more than was drafted
	if got := growtest.IDs(x.Draft(t, 1)); !cmp.Equal(got, []token.ID{4}) {
		t.Errorf("drafts %v", got)
	}
	ran(8, 9, 0, 1, 2, 3)
	x.Begin(t, 5)
	x.Draft(t, 2)
	ran(5, 6)
	if !cmp.Equal(branch(x).Trunk, []token.ID{5}) {
		t.Errorf("a new text begins with %v", branch(x).Trunk)
	}
}

// TestBounds: a draft model with a short context and small steps drafts as far as it can.
func TestBounds(t *testing.T) {
	for _, a := range all {
		p := sample.Params{}
		if a.draws() {
			p = sample.Params{Temperature: 1, Seed: 4}
		}
		for length := 1; length < 12; length++ {
			m := growtest.Cycle(10, 1)
			m.Dims.Context, m.Dims.Rows = 8, 1
			x := openDraft(t, a.name, m, p, make([]token.ID, length)...)
			// Behind the last token of the context the model has no logits: the last draft is beyond it by one.
			if got := len(growtest.PerDepth(x.Draft(t, 64))); got > max(0, 9-length) || length < 8 && got == 0 {
				t.Errorf("%s: %d levels behind %d tokens of 8", a.name, got, length)
			}
		}
		m := growtest.Cycle(10, 0.01)
		m.Dims.Context, m.Dims.Rows = 1000, 3
		x := openDraft(t, a.name, m, p, 1, 2, 3, 4, 5, 6, 7)
		if tree := x.Draft(t, 64); tree.Len() == 0 {
			t.Errorf("%s: no drafts with steps of 3 rows", a.name)
		}
		if s := branch(x); s.Most > method.MaxLive {
			t.Errorf("%s: %d live rows", a.name, s.Most)
		}
	}
}

// TestDraftFails expects the draft model's error to be returned, and its sequence to be closed.
func TestDraftFails(t *testing.T) {
	m := growtest.Cycle(10, 2)
	x := openDraft(t, "draft", m, sample.Params{}, 1, 2, 3)
	m.Fail = errors.New("broken")
	if err := x.Drafter.Draft(t.Context(), method.NewTree(8, 10)); !errors.Is(err, m.Fail) {
		t.Errorf("error %v", err)
	}
	s := branch(x)
	if err := x.Drafter.(method.Closer).Close(); err != nil || !s.Shut {
		t.Errorf("closed: %v, %v", s.Shut, err)
	}
}

// TestDistributions draws many texts of three tokens by every same-distribution method, with a draft model that is
// not the target, and compares with the target's distribution by a chi-square test. The same test must fail where the
// tree says other distributions than those that drafts were drawn from.
func TestDistributions(t *testing.T) {
	rounds := 6000
	if os.Getenv("GROVE_LONG") != "" {
		rounds = 100_000
	}
	for _, a := range all {
		if !a.draws() {
			continue
		}
		for seed := range uint64(2) {
			target, model := growtest.Random(3, seed), growtest.Random(3, seed+10)
			for _, honest := range []bool{true, false} {
				counts, accepted := drawTexts(t, a, target, model, rounds, honest)
				var want []float64
				for i := range token.ID(27) {
					a, b, c := i/9, i/3%3, i%3
					want = append(want, target.Probs(0)[a]*target.Probs(a)[b]*target.Probs(b)[c]*float64(rounds))
				}
				if err := stat.ChiSquare(counts, want); (err == nil) != honest || accepted == 0 {
					t.Errorf("%s, tables %d, honest %v: %v, %d accepted", a.name, seed, honest, err, accepted)
				}
			}
		}
	}
}

// drawTexts counts the texts of three tokens that rounds draw.
func drawTexts(t *testing.T, a drafting, target, model *growtest.Model, rounds int, honest bool) (counts []float64, accepted int) {
	view := growtest.View{Tree: method.NewTree(128, 3), Target: target, Rng: rand.New(rand.NewPCG(5, 5))}
	rates := method.NewRates(1)
	counts = make([]float64, 27)
	x := openDraft(t, a.name, model, sample.Params{Temperature: 1, Seed: 11}, 0)
	for round := range rounds {
		x.Noise.SampleIndex = round
		x.Begin(t, 0)
		view.Reset(3, rates)
		if err := x.Drafter.Draft(t.Context(), view.Tree); err != nil {
			t.Fatal(err)
		}
		for node := method.Root; !honest && node < view.Len(); node++ {
			if q := view.DraftDistribution(node); len(q.P) == 3 {
				view.Tree.SetDistribution(node, verify.Distribution{IDs: q.IDs, P: []float32{q.P[1], q.P[2], q.P[0]}})
			}
		}
		view.Last = 0
		text := view.Judge(t, a.rule)
		accepted += len(text) - 1
		for len(text) < 3 {
			p := target.Probs(text[len(text)-1])
			text = append(text, view.Pick(method.Root, p))
		}
		counts[text[0]*9+text[1]*3+text[2]]++
	}
	return counts, accepted
}

// TestTraversalMore reproduces the claim of the paper: of the same trees of draws, tests from the leaves to the root accept
// more than tests from the root do.
func TestTraversalMore(t *testing.T) {
	const rounds = 4000
	var sum [2]int
	for seed := range uint64(4) {
		target, model := growtest.Random(8, seed), growtest.Random(8, seed+10)
		view := growtest.View{Tree: method.NewTree(128, 8), Target: target, Rng: rand.New(rand.NewPCG(5, seed))}
		x, rates := openDraft(t, "draft-traversal", model, sample.Params{Temperature: 1, Seed: 11}, 0), method.NewRates(1)
		for round := range rounds {
			x.Noise.SampleIndex, view.Last = round, token.ID(round%8)
			x.Begin(t, view.Last)
			view.Reset(4, rates)
			if err := x.Drafter.Draft(t.Context(), view.Tree); err != nil {
				t.Fatal(err)
			}
			for i, r := range []verify.Rule{verify.Traversal, verify.Reject} {
				sum[i] += len(view.Judge(t, r))
			}
		}
	}
	t.Logf("tokens a round: traversal %.3f, reject %.3f", float64(sum[0])/(4*rounds), float64(sum[1])/(4*rounds))
	if sum[0] <= sum[1] {
		t.Errorf("traversal gives %d tokens in %d rounds, reject %d", sum[0], 4*rounds, sum[1])
	}
}
