package grow

import (
	"math"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

func TestTrim(t *testing.T) {
	const many = 1 << 20 // tokens that are counted until all counts are halved
	const g = compute.SubsetGroup
	target := growtest.Vocabulary(t, "llama", growtest.Filler("x")...)
	words, err := method.NewVocabMap(target, target)
	if err != nil {
		t.Fatal(err)
	}
	env := method.Env{Draft: &growtest.Model{Dims: method.Size{Vocabulary: target.Size(), Layers: 1}}, VocabMap: words, DraftVocab: 3*g - 1}
	tr := NewTrim(env)
	expect := func(what string, got []int32, want ...int32) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("at first", tr.pick(nil), 0, 1, 2)
	text := []token.ID{9 * g, 9*g + 1, 5*g + 3, 7 * g, 7*g + 1, 7*g + 2, 1 << 20}
	expect("of a text", tr.learn([]int32{0, 1, 2}, text), 0, 1, 2, 5, 7, 9)
	expect("of the next", tr.pick(nil), 0, 7, 9) // the end of an answer is in group 0
	tr.learn(nil, slices.Repeat([]token.ID{6 * g}, many))
	expect("most frequent", tr.pick(nil), 0, 6, 7)
	tr.learn(nil, slices.Repeat([]token.ID{8 * g, 10 * g}, many/3))
	expect("less than before", tr.pick(nil), 0, 6, 8)
	for _, n := range []int{0, target.Size(), 1 << 30} {
		if env.DraftVocab = n; NewTrim(env) != nil {
			t.Errorf("%d of %d tokens are left out", n, target.Size())
		}
	}
	env.DraftVocab = 2 * g
	asked := 0
	model := env.Draft.(*growtest.Model)
	model.Dims.Rows, model.Dims.Context = 16, 100
	model.Next = func(_ []token.ID, r forest.Row) []float32 {
		asked++
		expect("of a row", r.Want.Subset, 0, 1, 4) // those at first, and the text's
		return make([]float32, target.Size())
	}
	env.VocabMap = nil
	b := NewBranch(env, NewTrim(env))
	x := growtest.Text{Drafter: &tested{Branch: b, Grower: New(Shape{Ranks: []int{2}, Beam: 2, Depth: 2}, b, b.Vocabulary(target.Size()))}}
	x.Begin(t, 4*g)
	if x.Draft(t, 2); asked != 3 {
		t.Errorf("%d rows wanted logits", asked)
	}
	kept := tr.pick(nil)
	if n := testing.AllocsPerRun(10, func() { kept = tr.learn(kept, text[:6]); kept = tr.pick(kept[:0]) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestTrimChoice: the size is chosen for the first text, and again when the texts have grown by a quarter.
func TestTrimChoice(t *testing.T) {
	const g = compute.SubsetGroup
	asked, size := 0, 2
	env := method.Env{Draft: &growtest.Model{Dims: method.Size{Vocabulary: 10 * g}}, DraftVocab: method.AutoVocab, VocabChoice: &method.VocabChoice{
		Groups: func(coverage []float64) int {
			if asked++; len(coverage) != 10 || math.Abs(coverage[9]-1) > 1e-12 {
				t.Errorf("coverage %v", coverage)
			}
			return size
		},
		Counts: []uint32{0, 0, 0, 50, 0, 30, 0, 0, 20, 0},
	}}
	tr := NewTrim(env)
	expect := func(what string, asks int, want ...int32) {
		t.Helper()
		if got := tr.pick(nil); !slices.Equal(got, want) || asked != asks || tr.Kept() != len(want) {
			t.Errorf("%s: %v by %d choices, want %v by %d", what, got, asked, want, asks)
		}
	}
	expect("at first", 1, 3, 5)
	size = 3
	tr.learn(nil, slices.Repeat([]token.ID{7 * g}, 25))
	expect("a quarter later", 1, 3, 5)
	tr.learn(nil, []token.ID{7 * g})
	expect("and one", 2, 3, 5, 7)
	for _, n := range []int{0, 11, 1 << 40, -3} {
		size = n
		tr.learn(nil, slices.Repeat([]token.ID{7 * g}, 1000))
		if got := len(tr.pick(nil)); got != min(max(n, 1), 10) {
			t.Errorf("%d groups, asked for %d", got, n)
		}
	}
	env.VocabChoice = nil
	if NewTrim(env) != nil {
		t.Error("a part is left out, and nothing chooses which")
	}
}
