package grow

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/stat"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// tested is a drafter of a shape.
type tested struct {
	*Branch
	*Grower
	history *method.History
}

func (d *tested) Begin(h *method.History) error {
	d.history = h
	err := d.Branch.Begin(h)
	d.Branch.Committed(h.IDs(), true)
	return errors.Join(err, d.Grower.Begin(h.Noise))
}

func (d *tested) Committed(r method.Update) { d.Branch.Committed(r.IDs, false) }

func (d *tested) Draft(ctx context.Context, t *method.Tree) error {
	return d.Grower.Grow(ctx, t, len(d.history.IDs()))
}

// open makes a drafter of a shape and its text, which is empty.
func open(t *testing.T, s Shape, m *growtest.Model, p sample.Params) (*growtest.Text, *tested) {
	t.Helper()
	b := NewBranch(method.Env{Draft: m}, nil)
	d := &tested{Branch: b, Grower: New(s, b, b.Vocabulary(m.Dims.Vocabulary))}
	x := &growtest.Text{Drafter: d}
	x.Noise.Sampling = p
	return x, d
}

// TestStops expects no pass that does not pay, and the draft model's error to be returned.
func TestStops(t *testing.T) {
	m := growtest.Cycle(10, 2)
	x, d := open(t, Shape{Ranks: []int{4}, Beam: 4}, m, sample.Params{})
	x.Begin(t, 1, 2, 3)
	d.passes.seconds = 1
	tree := method.NewTree(128, 1000)
	tree.Throughput = 10 // tokens a second: a pass of a second is worth ten
	tree.Reset(64, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if tree.Len() != 4 || m.Calls != 1 {
		t.Errorf("%d drafts by %d passes, want 4 by the one that runs the text", tree.Len(), m.Calls)
	}
	m.Fail = errors.New("broken")
	x.Add(4)
	tree.Reset(64, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); !errors.Is(err, m.Fail) {
		t.Errorf("error %v", err)
	}
}

// TestSpine expects as many siblings as the confidence says, behind the first drafts alone, and none behind one that
// is not sure.
func TestSpine(t *testing.T) {
	sure := []float64{0.97, 0.6, 0.97} // of the first token behind the tokens 0, 1, 2
	m := growtest.Table(20, func(id, next int) float64 {
		p := sure[min(id, 2)]
		if next == min(id+1, 2) {
			return math.Log(p)
		}
		return math.Log((1-p)/19) - 1e-3*float64(next)
	})
	width := func(p float32, _ bool) int {
		if p > 0.95 {
			return 3
		}
		return 8
	}
	s := Shape{Ranks: []int{MaxRanks}, Beam: 1, Depth: 25, Width: width, Spine: true, Least: 0.8}
	x, _ := open(t, s, m, sample.Params{})
	x.Begin(t, 0)
	tree := x.Draft(t, 64)
	if got := growtest.PerDepth(tree); !cmp.Equal(got, []int{3, 8}) {
		t.Errorf("%v drafts a level, want 3 and 8", got)
	}
	for _, n := range tree.Nodes()[3:] {
		if n.Parent != 0 {
			t.Errorf("a draft behind draft %d", n.Parent)
		}
	}
	x.Begin(t, 2)
	if got := growtest.PerDepth(x.Draft(t, 64)); len(got) != 25 || got[24] != 3 {
		t.Errorf("always sure: %v drafts a level", got)
	}
}

// TestBeamOfOne: stochastic beam search with one beam draws a chain from the draft model.
func TestBeamOfOne(t *testing.T) {
	model := growtest.Random(3, 1)
	x, _ := open(t, Shape{Draw: WithoutReplacement, Ranks: []int{3}, Beam: 1, Growth: Beams}, model, sample.Params{Temperature: 1, Seed: 6})
	const rounds = 6000
	counts := map[[2]token.ID]float64{}
	for x.Noise.SampleIndex = range rounds {
		x.Begin(t, 0)
		n := x.Draft(t, 2).Nodes()
		if len(n) != 2 || n[1].Parent != 0 {
			t.Fatalf("not a chain of two: %v", n)
		}
		counts[[2]token.ID{n[0].ID, n[1].ID}]++
	}
	expectPairs(t, model, counts, rounds)
}

// expectShare compares how often something came with its probability, at five standard deviations.
func expectShare(t *testing.T, what string, count int, p, rounds float64) {
	t.Helper()
	if d := float64(count) - rounds*p; math.Abs(d) > 5*math.Sqrt(rounds*p*(1-p)) {
		t.Errorf("%s: %d times of %.0f, want %.0f", what, count, rounds, rounds*p)
	}
}

// TestBeamsOfTwo: the two best paths of stochastic beam search are draws without replacement from the draft model's paths. It counts how
// often they share their first token.
func TestBeamsOfTwo(t *testing.T) {
	model := growtest.Random(3, 1)
	x, _ := open(t, Shape{Draw: WithoutReplacement, Ranks: []int{3}, Beam: 2, Growth: Beams}, model, sample.Params{Temperature: 1, Seed: 6})
	const rounds = 80000
	share := 0
	for x.Noise.SampleIndex = range rounds {
		x.Begin(t, 0)
		n := x.Draft(t, 2).Nodes()
		if len(n) != 4 || n[2].Depth != 2 {
			t.Fatalf("not two paths of two: %v", n)
		}
		if n[2].Parent == n[3].Parent {
			share++
		}
	}
	p := 0.0
	for a := range token.ID(3) {
		first := model.Probs(0)[a]
		for b := range token.ID(3) {
			path := first * model.Probs(a)[b]
			p += path * (first - path) / (1 - path)
		}
	}
	expectShare(t, "two paths begin alike", share, p, rounds)
}

// TestNodesApart: the draws behind siblings are independent. It counts how often the first ones are equal.
func TestNodesApart(t *testing.T) {
	model := growtest.Table(3, func(_, next int) float64 { return -float64(next) })
	x, _ := open(t, Shape{Draw: WithoutReplacement, Ranks: []int{2, 2}, Beam: 2, Growth: Fixed}, model, sample.Params{Temperature: 1, Seed: 6})
	const rounds = 1000
	equal := 0
	for x.Noise.SampleIndex = range rounds {
		x.Begin(t, 0)
		tree := x.Draft(t, 2)
		first := func(parent int) token.ID { return tree.Nodes()[tree.Children(nil, parent)[0]].ID }
		if first(0) == first(1) {
			equal++
		}
	}
	p := 0.0
	for id := range token.ID(3) {
		p += math.Pow(model.Probs(0)[id], 2)
	}
	expectShare(t, "the first draws behind siblings are equal", equal, p, rounds)
}

// TestDrawnAtIndex: what drafts are drawn from is the distribution at their own index of the text, on which some ways to truncate depend.
func TestDrawnAtIndex(t *testing.T) {
	p := sample.Params{Temperature: 1, XTC: sample.XTC{Probability: 0.5, Threshold: 0.05}}
	model := growtest.Random(6, 1)
	for p.Seed = range 20 {
		x, _ := open(t, Shape{Draw: WithoutReplacement, Ranks: []int{2}, Beam: 2}, model, p)
		x.Begin(t, 0, 1, 2)
		tree := x.Draft(t, 3)
		c, err := sample.NewChain(sample.Settings{Params: p}, 6)
		if err != nil {
			t.Fatal(err)
		}
		for node := method.Root; node < tree.Len(); node++ {
			got := tree.DraftDistribution(node)
			if len(got.IDs) == 0 {
				continue
			}
			last := token.ID(2)
			if node != method.Root {
				last = tree.Nodes()[node].ID
			}
			want := make([]float32, 6)
			if err := c.Distribution(want, model.Next([]token.ID{last}, forest.Row{}), 3+tree.DepthOf(node)); err != nil {
				t.Fatal(err)
			}
			for id, v := range want {
				if got.Of(token.ID(id)) != float64(v) {
					t.Fatalf("seed %d, node %d: %+v, want %v", p.Seed, node, got, want)
				}
			}
		}
	}
}

// expectPairs compares counts of pairs behind token 0 with a model of three tokens.
func expectPairs(t *testing.T, m *growtest.Model, counts map[[2]token.ID]float64, rounds float64) {
	t.Helper()
	expectJoint(t, counts, func(a, b token.ID) float64 { return rounds * m.Probs(0)[a] * m.Probs(a)[b] })
}

// expectJoint compares counts of pairs of three tokens with what is expected of each.
func expectJoint(t *testing.T, counts map[[2]token.ID]float64, expected func(a, b token.ID) float64) {
	t.Helper()
	var got, want []float64
	for a := range token.ID(3) {
		for b := range token.ID(3) {
			got, want = append(got, counts[[2]token.ID{a, b}]), append(want, expected(a, b))
		}
	}
	if err := stat.ChiSquare(got, want); err != nil {
		t.Error(err)
	}
}

// TestIndependent expects each of three chains to be a sample of the draft model, whichever the others are, and the
// numbers of draws to be complete behind each node.
func TestIndependent(t *testing.T) {
	model := growtest.Random(3, 1)
	x, _ := open(t, Shape{Draw: WithReplacement, Ranks: []int{3}, Beam: 3}, model, sample.Params{Temperature: 1, Seed: 6})
	const rounds = 4000
	counts, together := map[[2]token.ID]float64{}, map[[2]token.ID]float64{}
	for x.Noise.SampleIndex = range rounds {
		x.Begin(t, 0)
		tree := x.Draft(t, 2)
		var first []token.ID // of the draws behind the root
		for node := method.Root; node < tree.Len(); node++ {
			all, draws := uint64(0), 3
			if node != method.Root {
				draws = bits.OnesCount64(tree.Nodes()[node].Samples)
			}
			for k := range draws {
				for _, at := range tree.Children(nil, node) {
					n := tree.Nodes()[at]
					if n.Samples>>draws != 0 {
						t.Fatalf("behind %d: draws %b of %d", node, n.Samples, draws)
					}
					if n.Samples>>k&1 == 0 {
						continue
					}
					all |= 1 << k
					if node == method.Root {
						first = append(first, n.ID)
					} else {
						counts[[2]token.ID{tree.Nodes()[node].ID, n.ID}]++
					}
				}
			}
			if n := len(tree.Children(nil, node)); n > 0 && all != 1<<draws-1 {
				t.Fatalf("behind %d: draws %b of %d", node, all, draws)
			}
		}
		together[[2]token.ID{first[0], first[2]}]++
	}
	expectPairs(t, model, counts, 3*rounds)
	expectJoint(t, together, func(a, b token.ID) float64 { return rounds * model.Probs(0)[a] * model.Probs(0)[b] }) // no draw depends on another
}

// TestIndependentBounds expects a tree without room to get fewer draws, the first ones, whatever they are.
func TestIndependentBounds(t *testing.T) {
	x, d := open(t, Shape{Draw: WithReplacement, Ranks: []int{8}, Beam: 8}, growtest.Cycle(9, 0.1), sample.Params{Temperature: 1, Seed: 2})
	for room := range 12 {
		x.Begin(t, 0)
		tree := method.NewTree(room, 9)
		tree.Reset(4, method.NewRates(1))
		if err := d.Draft(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		draws := 0
		for _, at := range tree.Children(nil, method.Root) {
			draws += bits.OnesCount64(tree.Nodes()[at].Samples)
		}
		if want := min(8, room); draws != want {
			t.Errorf("room for %d: %d draws, want %d", room, draws, want)
		}
	}
}

// TestSequences draws texts of three tokens by K-SEQ from three chains of another model, and compares with the
// target's distribution.
func TestSequences(t *testing.T) {
	target, model := growtest.Random(3, 3), growtest.Random(3, 4)
	x, d := open(t, Shape{Draw: WithReplacement, Ranks: []int{3}, Beam: 3}, model, sample.Params{Temperature: 1, Seed: 11})
	view := growtest.View{Tree: method.NewTree(64, 3), Target: target, Rng: rand.New(rand.NewPCG(5, 5))}
	const rounds = 6000
	counts, accepted := map[[2]token.ID]float64{}, 0
	for x.Noise.SampleIndex = range rounds {
		x.Begin(t, 0)
		view.Reset(2, method.NewRates(1))
		if err := d.Draft(t.Context(), view.Tree); err != nil {
			t.Fatal(err)
		}
		view.Last = 0
		text := view.Judge(t, verify.KSEQ)
		accepted += len(text) - 1
		if len(text) < 2 {
			text = append(text, view.Pick(method.Root, target.Probs(text[0])))
		}
		counts[[2]token.ID(text[:2])]++
	}
	if expectPairs(t, target, counts, rounds); accepted < rounds/2 {
		t.Errorf("%d drafts accepted in %d rounds", accepted, rounds)
	}
}

// TestBehindOthers draws into a tree that has drafts of another drafter, one of which is drawn, too.
func TestBehindOthers(t *testing.T) {
	for _, s := range []Shape{
		{Draw: WithoutReplacement, Ranks: []int{3}, Beam: 3}, {Draw: WithoutReplacement, Ranks: []int{3}, Beam: 3, Growth: Beams},
		{Draw: WithoutReplacement, Ranks: []int{3}, Beam: 3, Growth: Slots, Value: ByProbability, Drafts: 24}, {Draw: WithReplacement, Ranks: []int{3}, Beam: 3},
	} {
		x, d := open(t, s, growtest.Random(3, 1), sample.Params{Temperature: 1, Seed: 2})
		x.Begin(t, 0)
		tree := method.NewTree(64, 3)
		tree.Reset(3, method.NewRates(2))
		tree.SetDrafter(1)
		for at, id := method.Root, token.ID(0); id < 3; id++ {
			at = tree.Add(at, id, 0, 1)
		}
		tree.SetDrafter(0)
		if err := d.Draft(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		if tree.Len() <= 3 || !tree.Sampled() {
			t.Errorf("%+v: %d drafts", s, tree.Len())
		}
	}
}

// TestProduct compares the tree with all paths, sorted by probability.
func TestProduct(t *testing.T) {
	lists := [][]sample.Candidate{{{ID: 1, P: 0.6}, {ID: 2, P: 0.31}}, {{ID: 3, P: 0.5}, {ID: 4, P: 0.35}, {ID: 5, P: 0.1}}, {{ID: 6, P: 0.9}}}
	// 0.6, 0.31, 0.3, 0.27, 0.21, 0.189, 0.155, 0.1395, 0.1085
	want := [][]token.ID{{1}, {2}, {1, 3}, {1, 3, 6}, {1, 4}, {1, 4, 6}, {2, 3}, {2, 3, 6}, {2, 4}}
	var g Product
	for range 2 {
		tree := method.NewTree(64, 10)
		tree.Reset(8, method.NewRates(1))
		g.Grow(tree, lists, len(want))
		var got [][]token.ID
		for _, n := range tree.Nodes() {
			var path []token.ID
			if n.Parent != method.Root {
				path = append(path, got[n.Parent]...)
			}
			got = append(got, append(path, n.ID))
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		g.Grow(tree, lists, 64)
		if all := 2 + 2*3 + 2*3; tree.Len() != all {
			t.Errorf("%d drafts of %d paths", tree.Len(), all)
		}
		g.Grow(tree, nil, 5)
		g.Grow(tree, [][]sample.Candidate{{}, {{ID: 1, P: 1}}}, 5)
	}
}

// TestProductTies expects the path that was opened first of paths with equal probabilities.
func TestProductTies(t *testing.T) {
	lists := [][]sample.Candidate{{{ID: 1, P: 0.5}, {ID: 2, P: 0.5}}, {{ID: 3, P: 1}}}
	var g Product
	tree := method.NewTree(64, 10)
	tree.Reset(8, method.NewRates(1))
	g.Grow(tree, lists, 3)
	var got []token.ID
	for _, n := range tree.Nodes() {
		got = append(got, n.ID)
	}
	if want := []token.ID{1, 3, 2}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAllocates holds a round in steady use to no allocation.
func TestAllocates(t *testing.T) {
	for _, s := range []Shape{
		{Ranks: []int{4}, Beam: 4, Depth: 4}, {Draw: WithoutReplacement, Ranks: []int{3}, Beam: 4, Growth: Beams, Depth: 4},
		{Draw: WithoutReplacement, Ranks: []int{3}, Beam: 4, Growth: Slots, Value: ByProbability, Drafts: 24}, {Draw: WithoutReplacement, Ranks: []int{3}, Beam: 4, Growth: Slots, Value: ByRank, Drafts: 24}, {Draw: WithoutReplacement, Ranks: []int{3}, Beam: 4, Growth: Slots, Drafts: 24},
		{Draw: WithReplacement, Ranks: []int{4}, Beam: 4, Depth: 4},
	} {
		m := growtest.Random(5, 1)
		_, d := open(t, s, m, sample.Params{Temperature: 1})
		if err := d.Grower.Begin(method.Noise{Sampling: sample.Params{Temperature: 1}}); err != nil {
			t.Fatal(err)
		}
		d.source = still(m.Next([]token.ID{1}, forest.Row{}))
		tree, rates := method.NewTree(64, 5), method.NewRates(1)
		if n := testing.AllocsPerRun(20, func() {
			tree.Reset(4, rates)
			if err := d.Grow(t.Context(), tree, 3); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%+v: %v allocations", s, n)
		}
	}
}

// still is a source with the same logits everywhere.
type still []float32

func (s still) Root(context.Context) (bool, error)                { return true, nil }
func (s still) Expand(context.Context, *method.Tree, []int) error { return nil }
func (s still) State(int) []float32                               { return nil }
func (s still) Logits(int) []float32                              { return s }
func (s still) Room() (drafts, depth int)                         { return 64, 64 }
