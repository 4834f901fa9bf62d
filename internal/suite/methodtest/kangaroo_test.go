package methodtest

import (
	"slices"
	"strings"
	"testing"

	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
	"grove/method"
)

// drafted returns the drafts of each round of a text by a method, every draft run.
func (l *lab) drafted(t *testing.T, name string) (all [][]token.ID) {
	t.Helper()
	info := plant(t, name, func(_ *faulty, _ *wrapped, tree *method.Tree) {
		round := []token.ID{}
		for _, n := range tree.Nodes() {
			round = append(round, n.ID)
		}
		all = append(all, round)
	})
	s := &subject{lab: l, info: info, ctx: t.Context()}
	_, st, err := s.tell(engine.Config{}, sample.Params{Temperature: 1, Seed: 8}, eager, []move{{s.prompt(), 60}})
	if err != nil || st.Drafted == 0 {
		t.Fatalf("%s: %+v, %v", name, st, err)
	}
	return all
}

// TestKangarooZero: an adapter whose attention adds nothing drafts what the target's head says of the stream behind the first layers, as
// layerskip does, and another one does not.
func TestKangarooZero(t *testing.T) {
	l := newLab(t)
	info := l.target.Info()
	var kangaroo [][][]token.ID
	for _, zero := range []bool{true, false} {
		m := synthetic.Module{Family: "kangaroo", Target: synthetic.Spec{Width: info.Width, Vocab: info.Vocabulary, Layers: len(info.Layers)}, Exit: 2, Seed: 6}
		metadata, tensors, err := m.Parts()
		if err != nil {
			t.Fatal(err)
		}
		norm := l.target.(model.Lender).Lend().Norm.Floats()
		put(t, tensors, "output_norm.weight", func(i int) float32 { return norm[i] })
		if zero {
			put(t, tensors, "blk.0.attn_output.weight", func(int) float32 { return 0 })
		}
		opened, err := model.OpenModule(l.file(metadata, tensors), l.pool, l.target, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.modules = []model.Model{opened}
		kangaroo = append(kangaroo, l.drafted(t, "kangaroo:least=0+depth=5"))
	}
	layerskip := l.drafted(t, "layerskip:exit=2+depth=5")
	same := func(a, b [][]token.ID) bool { return slices.EqualFunc(a, b, slices.Equal) }
	if !same(kangaroo[0], layerskip) {
		t.Errorf("drafts %v, and of layerskip %v", kangaroo[0], layerskip)
	}
	if same(kangaroo[1], layerskip) {
		t.Error("an adapter of random weights drafts what layerskip does")
	}
}

// put replaces the values of a tensor.
func put(t *testing.T, tensors []tensor.View, name string, value func(i int) float32) {
	t.Helper()
	at := slices.IndexFunc(tensors, func(v tensor.View) bool { return v.Name == name })
	values := make([]float32, tensors[at].Elems())
	for i := range values {
		values[i] = value(i)
	}
	if err := tensor.Pack(tensor.F32, tensors[at].Data, values); err != nil {
		t.Fatal(err)
	}
}

// TestM2R2Zero: an accelerated stream to which nothing is added drafts what layerskip does, and another one does not.
func TestM2R2Zero(t *testing.T) {
	l := newLab(t)
	info := l.target.Info()
	var drafts [][][]token.ID
	for _, zero := range []bool{true, false} {
		m := synthetic.Module{Family: "m2r2", Target: synthetic.Spec{Width: info.Width, Vocab: info.Vocabulary, Layers: len(info.Layers)}, Exit: 2, Seed: 6}
		metadata, tensors, err := m.Parts()
		if err != nil {
			t.Fatal(err)
		}
		for i := range tensors {
			if name := tensors[i].Name; strings.HasSuffix(name, ".lora_b.weight") {
				put(t, tensors, name, func(i int) float32 { return map[bool]float32{false: 3 * float32(i%5-2)}[zero] })
			}
		}
		opened, err := model.OpenModule(l.file(metadata, tensors), l.pool, l.target, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.modules = []model.Model{opened}
		drafts = append(drafts, l.drafted(t, "m2r2:least=0+depth=5"))
	}
	layerskip := l.drafted(t, "layerskip:exit=2+depth=5")
	same := func(a, b [][]token.ID) bool { return slices.EqualFunc(a, b, slices.Equal) }
	if !same(drafts[0], layerskip) {
		t.Errorf("drafts %v, and of layerskip %v", drafts[0], layerskip)
	}
	if same(drafts[1], layerskip) {
		t.Error("a stream with additions drafts what layerskip does")
	}
}
