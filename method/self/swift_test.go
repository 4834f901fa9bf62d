package self

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/layers"
)

const swiftVocabulary = 40

// swiftText is a text that is decoded greedily with a drafter on its own trunk.
type swiftText struct {
	growtest.Text
	model *growtest.Model
	trunk *growtest.Sequence
	tree  *method.Tree
}

func swiftNewText(t *testing.T, m *swift, model *growtest.Model, prompt ...token.ID) *swiftText {
	t.Helper()
	x := &swiftText{model: model, trunk: model.Sequence(), tree: method.NewTree(128, swiftVocabulary)}
	d, err := m.NewDrafter(x.trunk)
	if err != nil {
		t.Fatal(err)
	}
	x.Drafter = d
	x.Begin(t, prompt...)
	return x
}

// round drafts and verifies, and returns the accepted drafts and the tokens that were drawn.
func (x *swiftText) round(t *testing.T) (accepted int) {
	t.Helper()
	ids := x.IDs()
	x.trunk.Trunk = slices.Clone(ids[:len(ids)-1])
	x.tree.Reset(30, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), x.tree); err != nil {
		t.Fatal(err)
	}
	if n := x.trunk.Live(); n > 0 {
		t.Fatalf("%d rows hang from the trunk after drafting", n)
	}
	path := slices.Clone(ids)
	for node, ok := method.Root, true; ok; {
		logits := x.model.Next(path, forest.Row{})
		best := token.ID(slices.Index(logits, slices.Max(logits)))
		path = append(path, best)
		if node, ok = x.tree.Child(node, best); ok {
			accepted++
		}
	}
	x.Add(path[len(ids):]...)
	return accepted
}

func swiftOpened(t *testing.T, model *growtest.Model) *swift {
	t.Helper()
	return growtest.Open(t, "swift", method.Env{Vocabulary: swiftVocabulary, Target: model}).(*swift)
}

func TestSwiftNeeds(t *testing.T) {
	if _, err := swiftOpened(t, growtest.Skipping(swiftVocabulary, 3, forest.Layers{}, 0.9)).NewDrafter(nil); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no trunk: %v", err)
	}
}

// TestTree: siblings by confidence, and only the likeliest is expanded.
func TestTree(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want []int
	}{{0.97, slices.Repeat([]int{3}, swiftDeepest)}, {0.85, slices.Repeat([]int{5}, swiftDeepest)}, {0.6, []int{8}}, {0.3, []int{10}}} {
		model := growtest.Skipping(swiftVocabulary, 6, forest.LayerRange(0, 6), c.p)
		x := swiftNewText(t, swiftOpened(t, model), model, 1, 2, 3)
		x.round(t)
		if got := growtest.PerDepth(x.tree); !slices.Equal(got, c.want) {
			t.Errorf("confidence %v: %v drafts a level, want %v", c.p, got, c.want)
		}
	}
	for p, want := range map[float32]int{0.97: 1, 0.85: 3, 0.6: 5, 0.3: 10} {
		if got := width(p, false); got != want {
			t.Errorf("confidence %v, sampled: %d drafts, want %d", p, got, want)
		}
	}
}

// TestSwiftNothingSkipped: with a share of 0 the drafts are those of the target, and there is nothing to search.
func TestSwiftNothingSkipped(t *testing.T) {
	model := growtest.Skipping(swiftVocabulary, 8, forest.Layers{}, 0.9)
	m := &swift{model.Size(), layers.NewSearch(8, 0)}
	x := swiftNewText(t, m, model, 1, 2, 3)
	for range 3 {
		if got := x.round(t); got != swiftDeepest {
			t.Errorf("%d drafts were accepted of %d", got, swiftDeepest)
		}
	}
	if now := m.Next(); now.Open || now.Best != (layers.Set{}) {
		t.Errorf("searching %+v", now)
	}
}

// TestSearch decodes with a model of which five layers do nothing: the search finds a better set than the first one,
// and what it has learned can be kept.
func TestSearch(t *testing.T) {
	var free forest.Layers
	for _, l := range []int{2, 4, 6, 8, 10} { // the first set has none of them
		free = free.With(l)
	}
	model := growtest.Skipping(swiftVocabulary, 12, free, 0.9)
	m := swiftOpened(t, model)
	x := swiftNewText(t, m, model, 1, 2, 3)
	first, best := 0, 0
	for round := range 2500 {
		n := x.round(t)
		if round < 100 {
			first += n
		}
		if round >= 2400 {
			best += n
		}
		if len(x.IDs()) > 3900 {
			x.Begin(t, token.ID(round%swiftVocabulary), token.ID(round/3%swiftVocabulary), 3)
		}
		if now := m.Next(); now.Best.Layers(0) != 5 {
			t.Fatalf("a set of %v layers", now.Best.Layers(0))
		}
	}
	if got := m.Next().Best[layers.Attention].Minus(free).Len(); got > 2 || best <= first {
		t.Errorf("%d layers of the best set matter; accepted %d of 100 rounds at first, %d at last", got, first, best)
	}
	b, err := m.MarshalBinary()
	if err != nil || len(b) > method.MaxSaved {
		t.Fatal(len(b), err)
	}
	other := swiftOpened(t, model)
	if err := other.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if again, err := other.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
		t.Errorf("restored %+v, %v", other.Next(), err)
	}
}

// TestSmallSteps: a model whose steps hold one row drafts, and a text that fills the context ends drafting.
func TestSmallSteps(t *testing.T) {
	model := growtest.Skipping(swiftVocabulary, 6, forest.LayerRange(0, 6), 0.9)
	model.Dims.Rows, model.Dims.Context = 1, 30
	x := swiftNewText(t, swiftOpened(t, model), model, slices.Repeat([]token.ID{1}, 20)...)
	if x.round(t) != 11 { // the draft behind the last index of the context needs no row
		t.Errorf("%d tokens: %d drafts", len(x.IDs()), x.tree.Len())
	}
	model.Fail = errors.New("broken")
	x.Begin(t, 1, 2, 3)
	x.trunk.Trunk = []token.ID{1, 2}
	if err := x.Drafter.Draft(t.Context(), x.tree); !errors.Is(err, model.Fail) {
		t.Errorf("error %v", err)
	}
}
