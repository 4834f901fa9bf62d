package swift

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"grove/forest"
	"grove/method"
	"grove/method/grow/growtest"
	"grove/text/token"
)

const vocabulary = 40

// sure is a model whose next token is likely, by a text's last three tokens and its length. Each layer that is passed
// over changes it at a share of places, unless it is a layer of free.
func sure(layers int, free forest.Layers, p float64) *growtest.Model {
	return &growtest.Model{
		Dims: method.Size{Vocabulary: vocabulary, Layers: layers, Width: 8, Context: 4000, Rows: 16},
		Next: func(path []token.ID, r forest.Row) []float32 {
			h := fnv.New64a()
			for _, id := range path[max(0, len(path)-3):] {
				h.Write([]byte{byte(id)})
			}
			h.Write([]byte{byte(len(path)), byte(len(path) >> 8)})
			next := h.Sum64() >> 20 % vocabulary
			for l := range layers {
				h.Write([]byte{byte(l)})
				if r.Skip.Has(l) && !free.Has(l) && h.Sum64()>>20%10 == 0 {
					next = (next + 1) % vocabulary
				}
			}
			logits := make([]float32, vocabulary)
			for id := range logits {
				logits[id] = float32(math.Log((1 - p) / (vocabulary - 1)))
			}
			logits[next] = float32(math.Log(p))
			return logits
		},
	}
}

// text is a text that is decoded greedily with a drafter on its own trunk.
type text struct {
	growtest.Text
	model *growtest.Model
	trunk *growtest.Sequence
	tree  *method.Tree
}

func newText(t *testing.T, m *swift, model *growtest.Model, prompt ...token.ID) *text {
	t.Helper()
	x := &text{model: model, trunk: model.Sequence(), tree: method.NewTree(128, vocabulary)}
	d, err := m.NewDrafter(x.trunk)
	if err != nil {
		t.Fatal(err)
	}
	x.Drafter = d
	x.Begin(t, prompt...)
	return x
}

// round drafts and verifies, and returns the accepted drafts and the tokens that were drawn.
func (x *text) round(t *testing.T) (accepted int) {
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

func opened(t *testing.T, model *growtest.Model) *swift {
	t.Helper()
	info, err := method.Find("swift")
	if err != nil {
		t.Fatal(err)
	}
	m, err := info.Open(method.Env{Vocabulary: vocabulary, Target: model})
	if err != nil {
		t.Fatal(err)
	}
	return m.(*swift)
}

func TestNeeds(t *testing.T) {
	for _, layers := range []int{1, 2} {
		if err := meets(method.Env{Target: sure(layers, forest.Layers{}, 0.9)}); !errors.Is(err, method.ErrNeeds) {
			t.Errorf("a model of %d layers: %v", layers, err)
		}
	}
	if err := meets(method.Env{}); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no model: %v", err)
	}
	if err := meets(method.Env{Target: sure(3, forest.Layers{}, 0.9)}); err != nil {
		t.Errorf("3 layers: %v", err)
	}
	if _, err := opened(t, sure(3, forest.Layers{}, 0.9)).NewDrafter(nil); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no trunk: %v", err)
	}
}

// TestSets holds the sets that are tried to their size and to the layers that may be passed over.
func TestSets(t *testing.T) {
	for layers, size := range map[int]int{3: 1, 4: 1, 5: 1, 6: 2, 12: 5, 32: 14, 128: 57} {
		s := newSearch(layers, ratio)
		first := []int{1, 3, 5}
		for _, l := range first[:min(size, len(first))] {
			if !s.best.Has(l) {
				t.Errorf("%d layers: layer %d is not passed over at first", layers, l)
			}
		}
		tried := map[forest.Layers]bool{}
		for range 40 {
			now := s.next()
			for _, set := range []forest.Layers{now.best, now.other} {
				if (now.open || set == now.best) && (set.Len() != size || set.Has(0) || set.Has(layers-1)) {
					t.Fatalf("%d layers: a set of %d that begins %x, want %d", layers, set.Len(), set[0], size)
				}
			}
			if now.open && now.other == now.best {
				t.Fatalf("%d layers: the best set is tried against itself", layers)
			}
			tried[now.other] = true
			for range window {
				s.count(now, true, false)
			}
			s.open = s.size < layers-2
			s.propose()
		}
		if layers > 4 && len(tried) < 2 {
			t.Errorf("%d layers: %d sets were tried", layers, len(tried))
		}
	}
}

// TestDecide expects the set that drafted more of the same places to be kept, whatever it did elsewhere, and counts
// of an ended trial to be left out.
func TestDecide(t *testing.T) {
	s := newSearch(12, ratio)
	play := func(best, other int) (won bool) {
		now := s.next()
		for i := range window {
			s.count(now, i < best, i < other)
		}
		s.count(now, true, true) // too late
		if s.seen != 0 || s.number != now.number+1 {
			t.Fatalf("trial %d with %d places", s.number, s.seen)
		}
		if kept := max(best, other); s.score != float64(kept)/window {
			t.Errorf("%d against %d: score %v", best, other, s.score)
		}
		return s.next().best == now.other
	}
	for _, c := range []struct {
		best, other int
		won         bool
	}{{10, 10, false}, {10, 9, false}, {10, 11, true}, {3, 2, false}, {0, 20, true}} {
		if won := play(c.best, c.other); won != c.won {
			t.Errorf("%d against %d: won %v", c.best, c.other, won)
		}
	}
	if play(31, 0); s.next().open {
		t.Error("the search goes on after 31 of 32")
	}
	s = newSearch(12, ratio)
	for range maxFailedTrials {
		if !s.next().open {
			t.Fatal("the search ended early")
		}
		play(5, 5)
	}
	if s.next().open {
		t.Error("the search goes on without success")
	}
}

// TestTree: siblings by confidence, and only the likeliest is expanded.
func TestTree(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want []int
	}{{0.97, slices.Repeat([]int{3}, deepest)}, {0.85, slices.Repeat([]int{5}, deepest)}, {0.6, []int{8}}, {0.3, []int{10}}} {
		model := sure(6, forest.LayerRange(0, 6), c.p)
		x := newText(t, opened(t, model), model, 1, 2, 3)
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

// TestNothingSkipped: with a share of 0 the drafts are those of the target, and there is nothing to search.
func TestNothingSkipped(t *testing.T) {
	model := sure(8, forest.Layers{}, 0.9)
	m := &swift{model.Size(), newSearch(8, 0)}
	x := newText(t, m, model, 1, 2, 3)
	for range 3 {
		if got := x.round(t); got != deepest {
			t.Errorf("%d drafts were accepted of %d", got, deepest)
		}
	}
	if now := m.next(); now.open || now.best.Len() > 0 {
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
	model := sure(12, free, 0.9)
	m := opened(t, model)
	x := newText(t, m, model, 1, 2, 3)
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
			x.Begin(t, token.ID(round%vocabulary), token.ID(round/3%vocabulary), 3)
		}
		if now := m.next(); now.best.Len() != 5 {
			t.Fatalf("a set of %d layers", now.best.Len())
		}
	}
	if got := m.best.Minus(free).Len(); got > 2 || best <= first {
		t.Errorf("%d layers of the best set matter; accepted %d of 100 rounds at first, %d at last", got, first, best)
	}
	b, err := m.MarshalBinary()
	if err != nil || len(b) > method.MaxSaved {
		t.Fatal(len(b), err)
	}
	other := opened(t, model)
	if err := other.UnmarshalBinary(b); err != nil || other.best != m.best || other.open != m.open || other.score != m.score {
		t.Errorf("restored %+v, %v", other.next(), err)
	}
}

// TestSaved refuses records that make no sense, and keeps its own set then.
func TestSaved(t *testing.T) {
	b, _ := newSearch(12, ratio).MarshalBinary()
	set := func(at int, v byte) []byte { c := slices.Clone(b); c[at] = v; return c }
	for name, bad := range map[string][]byte{
		"nothing": nil, "a part": b[:len(b)-1], "more": append(slices.Clone(b), 0), "other layers": set(0, 13), "the first layer": set(4, b[4]&^2|1),
		"a larger set": set(4, b[4]|4), "a layer beyond": set(12, 1),
		"no score": append(binary.LittleEndian.AppendUint64(slices.Clone(b[:20]), math.Float64bits(math.NaN())), 1),
	} {
		s := newSearch(12, ratio)
		before := s.next()
		if err := s.UnmarshalBinary(bad); err == nil || s.next() != before {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestSmallSteps: a model whose steps hold one row drafts, and a text that fills the context ends drafting.
func TestSmallSteps(t *testing.T) {
	model := sure(6, forest.LayerRange(0, 6), 0.9)
	model.Dims.Rows, model.Dims.Context = 1, 30
	x := newText(t, opened(t, model), model, slices.Repeat([]token.ID{1}, 20)...)
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

// FuzzRecord reads hostile records of a search: what is taken over is a set of layers that may be skipped.
func FuzzRecord(f *testing.F) {
	const layers = 12
	good, err := newSearch(layers, 0.4).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[1:])
	f.Add(append(bytes.Clone(good), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newSearch(layers, 0.4)
		if s.UnmarshalBinary(b) != nil {
			return
		}
		if s.best.Len() != s.size || s.best.Has(0) || s.best.Has(layers-1) || !(s.score >= 0 && s.score <= 1) {
			t.Errorf("layers %x, score %v", s.best, s.score)
		}
	})
}
