package reference

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// enumeration is dice that fall every way, one after the other: the ways of all throws so far, and the way that was taken of each.
type enumeration struct {
	ways, taken []int
	thrown      int
	chance      float64 // of what has fallen
}

// next turns to the next way that the dice fall, and reports whether there is one.
func (e *enumeration) next() bool {
	for n := len(e.taken); n > 0; n-- {
		if e.taken[n-1]++; e.taken[n-1] < e.ways[n-1] {
			e.ways, e.taken = e.ways[:n], e.taken[:n]
			return true
		}
	}
	return false
}

// throw returns one of some ways.
func (e *enumeration) throw(ways int) int {
	if e.thrown++; e.thrown > len(e.taken) {
		e.ways, e.taken = append(e.ways, ways), append(e.taken, 0)
	}
	return e.taken[e.thrown-1]
}

func (e *enumeration) Pick(p []float64, _ int) int {
	var likely []int
	for x, v := range p {
		if v > 0 {
			likely = append(likely, x)
		}
	}
	x := likely[e.throw(len(likely))]
	e.chance *= p[x]
	return x
}

func (e *enumeration) Draw(text []int, p []float64) int { return e.Pick(p, len(text)) }

func (e *enumeration) Pass(chance float64, _, _ int) bool {
	if chance <= 0 || chance >= 1 {
		return chance >= 1
	}
	if e.throw(2) == 0 {
		e.chance *= chance
		return true
	}
	e.chance *= 1 - chance
	return false
}

// conditionals is a random model of a few tokens, of texts that differ in their last two tokens; some tokens have no probability.
func conditionals(seed uint64, vocabulary int) Model {
	rows := map[[2]int][]float64{}
	return func(text []int) []float64 {
		key := [2]int{text[len(text)-1], -1}
		if len(text) > 1 {
			key[1] = text[len(text)-2]
		}
		r := rand.New(rand.NewPCG(seed, uint64(2+key[1])<<32|uint64(key[0])))
		for sum(rows[key]) == 0 {
			p := make([]float64, vocabulary)
			for x := range p {
				p[x] = float64(max(0, r.IntN(8)-1))
			}
			rows[key] = normalised(p)
		}
		return rows[key]
	}
}

// game is a rule with trees of the draws that it takes.
type game struct {
	name        string
	rule        Rule
	independent bool
	widths      []int
	lossy       bool
}

// play enumerates all trees and all outcomes of a round by random tables, and returns how far the probability of a text is from what the
// target gives it, and the expected tokens of the round.
func (g game) play(seed uint64) (off, tokens float64) {
	target, draft := conditionals(2*seed, 3), conditionals(2*seed+1, 3)
	n := len(g.widths) + 1
	got, dice := map[[5]int]float64{}, &enumeration{}
	var rest func(text []int, chance float64, total map[[5]int]float64) // the texts of n tokens that begin so
	rest = func(text []int, chance float64, total map[[5]int]float64) {
		if len(text) == n+1 {
			total[[5]int(append(slices.Clone(text), make([]int, 5)...))] += chance
			return
		}
		for x, p := range target(text) {
			if p > 0 {
				rest(append(slices.Clip(text), x), chance*p, total)
			}
		}
	}
	for more := true; more; more = dice.next() {
		dice.thrown, dice.chance = 0, 1
		path, next := Round([]int{0}, target, Draws(draft, g.independent, g.widths, dice), g.rule, dice)
		text := []int{0}
		for _, node := range path {
			text = append(text, node.Token)
		}
		tokens += dice.chance * float64(len(text))
		rest(append(text, next), dice.chance, got)
	}
	want := map[[5]int]float64{}
	rest([]int{0}, 1, want)
	for text := range got {
		off = max(off, math.Abs(got[text]-want[text]))
	}
	for text := range want {
		off = max(off, math.Abs(got[text]-want[text]))
	}
	return off, tokens
}

// TestMarginals expects each rule that promises it to give texts with the probabilities that the table gives them, and the lossy ones not to.
func TestMarginals(t *testing.T) {
	for _, g := range []game{
		{name: "match", rule: Match, widths: []int{2, 1}},
		{name: "reject", rule: Reject, widths: []int{2, 1}},
		{name: "reject all", rule: Reject, widths: []int{3}},
		{name: "reject chain", rule: Reject, widths: []int{1, 1, 1}},
		{name: "specinfer", rule: SpecInfer, independent: true, widths: []int{2, 2}},
		{name: "kseq", rule: KSEQ, independent: true, widths: []int{2, 2}},
		{name: "kseq of three", rule: KSEQ, independent: true, widths: []int{3}},
		{name: "block", rule: Block, widths: []int{1, 1, 1}},
		{name: "traversal", rule: Traversal, widths: []int{2, 1}},
		{name: "traversal all", rule: Traversal, widths: []int{3}},
		{name: "traversal-iid", rule: TraversalIID, independent: true, widths: []int{2, 2}},
		{name: "typical", rule: Typical, widths: []int{2, 1}, lossy: true},
		{name: "threshold", rule: Threshold(2, 1), widths: []int{2, 1}, lossy: true},
		{name: "judge", rule: Judge(func(text []int) float64 { return float64(text[len(text)-1]) }, 0.5), widths: []int{2, 1}, lossy: true},
	} {
		t.Run(g.name, func(t *testing.T) {
			most := 0.0
			for seed := range uint64(6) {
				off, _ := g.play(seed)
				most = max(most, off)
			}
			if g.lossy && most < 1e-3 || !g.lossy && !(most <= 1e-12) {
				t.Errorf("a text's probability is off by %v", most)
			}
		})
	}
}

// TestTraversal compares rules that go from the leaves to the root with those that go from the root: texts have the target's
// distribution in deep trees, the expected tokens of a round are those of block verification for a chain, and no fewer than those of
// tests draft by draft for a tree; somewhere they are more.
func TestTraversal(t *testing.T) {
	for _, c := range []struct {
		leaves, root Rule
		independent  bool
		widths       []int
		tables       uint64
		equal        bool
	}{
		{leaves: Traversal, root: Block, widths: []int{1, 1, 1}, tables: 12, equal: true},
		{leaves: Traversal, root: Reject, widths: []int{1, 1, 1}, tables: 12},
		{leaves: Traversal, root: Reject, widths: []int{2, 2}, tables: 6},
		{leaves: Traversal, root: Reject, widths: []int{1, 2, 2}, tables: 4},
		{leaves: Traversal, root: Reject, widths: []int{2, 1, 2}, tables: 4},
		{leaves: Traversal, root: Reject, widths: []int{3, 1, 1}, tables: 4},
		{leaves: TraversalIID, root: SpecInfer, independent: true, widths: []int{2, 2, 2}, tables: 4},
		{leaves: TraversalIID, root: SpecInfer, independent: true, widths: []int{3, 3}, tables: 4},
	} {
		gain := 0.0
		for seed := range c.tables {
			off, got := game{rule: c.leaves, independent: c.independent, widths: c.widths}.play(100 + seed)
			_, want := game{rule: c.root, independent: c.independent, widths: c.widths}.play(100 + seed)
			if !(off <= 1e-12) || c.equal && !(math.Abs(got-want) <= 1e-9) || !(got >= want-1e-9) {
				t.Errorf("%v draws, table %d: a text's probability is off by %v; %v tokens from the leaves, %v from the root", c.widths, seed, off, got, want)
			}
			gain = max(gain, got-want)
		}
		if !c.equal && !(gain >= 1e-3) {
			t.Errorf("%v draws: at most %v tokens more from the leaves", c.widths, gain)
		}
		t.Logf("%v draws: up to %.3f tokens more from the leaves", c.widths, gain)
	}
}

// random is dice that fall by a seed.
type random struct{ *rand.Rand }

func (r random) Pick(p []float64, _ int) int {
	u := r.Float64()
	for x, v := range p {
		if u -= v; u < 0 {
			return x
		}
	}
	return slices.Index(p, slices.Max(p)) // rounding
}

func (r random) Draw(text []int, p []float64) int { return r.Pick(p, len(text)) }

func (r random) Pass(chance float64, _, _ int) bool { return r.Float64() < chance }

// Example draws a text by recursive rejection from a tree of three drafts behind the text and one behind each, drawn from a model that is
// nearly the target.
func Example() {
	target := func([]int) []float64 { return []float64{0.6, 0.3, 0.1} }
	draft := func([]int) []float64 { return []float64{0.5, 0.3, 0.2} }
	dice := random{rand.New(rand.NewPCG(1, 2))}
	text, accepted := Decode([]int{0}, 20, target, Draws(draft, false, []int{2, 1}, dice), Reject, dice)
	fmt.Println(len(text) > 20, accepted > 10)
	// Output: true true
}
