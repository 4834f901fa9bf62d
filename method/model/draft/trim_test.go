package draft

import (
	"errors"
	"slices"
	"testing"

	"grove/compute"
	"grove/method"
	"grove/text/token"
)

func TestTrim(t *testing.T) {
	const g = compute.SubsetGroup
	target := vocabulary(t, "llama", filler("x")...)
	words, err := method.NewVocabMap(target, target)
	if err != nil {
		t.Fatal(err)
	}
	env := method.Env{Draft: &scribe{t: target}, Words: words, DraftVocab: 3*g - 1}
	tr := newTrim(env)
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
	tr.learn(nil, slices.Repeat([]token.ID{6 * g}, forgetAfter))
	expect("most frequent", tr.pick(nil), 0, 6, 7)
	tr.learn(nil, slices.Repeat([]token.ID{8 * g, 10 * g}, forgetAfter/3))
	expect("less than before", tr.pick(nil), 0, 6, 8)
	for _, n := range []int{0, target.Size(), 1 << 30} {
		if env.DraftVocab = n; newTrim(env) != nil {
			t.Errorf("%d of %d tokens are left out", n, target.Size())
		}
	}
	env.DraftVocab = 5
	if _, err := newTrees(shapes[0], env).NewDrafter(); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("a branch that leaves nothing out: %v", err)
	}
	kept := tr.pick(nil)
	if n := testing.AllocsPerRun(10, func() { kept = tr.learn(kept, text[:6]); kept = tr.pick(kept[:0]) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
