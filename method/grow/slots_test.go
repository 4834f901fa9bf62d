package grow

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/method"
)

// grown returns the tree of a drafter behind token 0, whose paths may be depth long.
func grown(t *testing.T, s Shape, m *growtest.Model, p sample.Params, depth int) *method.Tree {
	t.Helper()
	x, _ := open(t, s, m, p)
	x.Begin(t, 0)
	return x.Draft(t, depth)
}

// TestSequoia compares the tokens that trees by the published vector expect with worked numbers: the best trees of 1, 2, 4, 8, 16 and
// 32 nodes, the root included, of at most ten levels. The vector has four digits.
func TestSequoia(t *testing.T) {
	m := growtest.Cycle(20, 0.01)
	for n, want := range map[int]float64{2: 1.6342, 4: 2.2914, 8: 2.7322, 16: 3.1303, 32: 3.5007} {
		s := Shape{Draw: WithoutReplacement, Ranks: []int{10}, Beam: 6, Growth: Slots, Value: ByRank, Drafts: n - 1}
		tree := grown(t, s, m, sample.Params{Temperature: 1, Seed: 1}, 9)
		got := 1.0
		for i := range tree.Nodes() {
			got += float64(tree.Score(i))
		}
		if tree.Len() != n-1 || math.Abs(got-want) > 1e-4 {
			t.Errorf("%d nodes: %d drafts, %.5f tokens, want %.5f", n, tree.Len(), got, want)
		}
	}
}

// places returns the value of the place of each draft, by its place in the tree, and the highest of those that no draft has: the value
// of a node times the product of 1 - Q over the draws before it, Q among what was left. Nodes have four draws, and paths five.
func places(tree *method.Tree) (filled []float64, empty float64) {
	filled = make([]float64, tree.Len())
	through := map[int]float64{method.Root: 1} // that a text goes through a node
	for node := method.Root; node < tree.Len(); node++ {
		value, left := through[node], 1.0
		children := tree.Children(nil, node)
		for _, at := range children {
			q := tree.DraftDistribution(node).Of(tree.Nodes()[at].ID)
			filled[at], through[at] = value, value*q/left
			value, left = value*(1-q/left), left-q
		}
		if len(children) < 4 && tree.DepthOf(node) < 5 {
			empty = max(empty, value)
		}
	}
	return filled, empty
}

// TestSlotValues expects places to be filled by falling values, and none of a higher value than a filled one to be empty.
func TestSlotValues(t *testing.T) {
	for seed := range uint64(20) {
		s := Shape{Draw: WithoutReplacement, Ranks: []int{4}, Beam: 2, Growth: Slots, Value: ByProbability, Drafts: 30}
		tree := grown(t, s, growtest.Random(6, seed), sample.Params{Temperature: 1, Seed: seed}, 5)
		filled, empty := places(tree)
		if !slices.IsSortedFunc(filled, func(a, b float64) int { return cmp.Compare(math.Round(1e9*b), math.Round(1e9*a)) }) {
			t.Errorf("seed %d: values %v do not fall", seed, filled)
		}
		if least := filled[len(filled)-1]; tree.Len() != 30 || empty > least+1e-9 {
			t.Errorf("seed %d: %d drafts, a place of value %v is empty and one of %v is not", seed, tree.Len(), empty, least)
		}
		s.Levels, s.Beam = true, 30
		filled, empty = places(grown(t, s, growtest.Random(6, seed), sample.Params{Temperature: 1, Seed: seed}, 5))
		if least := slices.Min(filled); least <= 1.0/30 || len(filled) < 30 && empty > 1.0/30 {
			t.Errorf("seed %d, level by level: places of values from %v are filled, one of %v is empty", seed, least, empty)
		}
	}
}

// TestSlotBeams expects the same tree however many drafts a pass expands, and one of the drafts behind the text where a pass
// does not pay.
func TestSlotBeams(t *testing.T) {
	for seed := range uint64(5) {
		var want []method.Node
		for _, beam := range []int{1, 3, 24} {
			s := Shape{Draw: WithoutReplacement, Ranks: []int{4}, Beam: beam, Growth: Slots, Value: ByProbability, Drafts: 24}
			got := grown(t, s, growtest.Random(6, seed), sample.Params{Temperature: 1, Seed: seed}, 9).Nodes()
			if want == nil {
				want = got
			}
			for i, n := range got {
				if len(got) != 24 || n.ID != want[i].ID || n.Parent != want[i].Parent {
					t.Fatalf("seed %d, %d a pass: draft %d is %+v, want %+v", seed, beam, i, n, want[i])
				}
			}
		}
	}
	x, d := open(t, Shape{Draw: WithoutReplacement, Ranks: []int{4}, Beam: 6, Growth: Slots, Value: ByProbability, Drafts: 24}, growtest.Cycle(9, 0.1), sample.Params{Temperature: 1})
	x.Begin(t, 0)
	d.passes.seconds = 1
	tree := method.NewTree(64, 9)
	tree.Throughput = 10
	tree.Reset(9, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); err != nil || tree.Len() != 4 {
		t.Errorf("%d drafts where no pass pays, %v; want the 4 behind the text", tree.Len(), err)
	}
}
