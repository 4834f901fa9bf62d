package module

import (
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// chain is a text that the predictors of a file draft for. The target's feature of a token is its place. What a row of predictor p gives is 1000(p+1), and how
// many rows the path has that ends with it: so a row can see whose it has.
type chain struct {
	t       *testing.T
	chained bool
	first   int // place of the first feature
	ids     []token.ID
	told    int
	h       method.History
	models  []*busy
	drafts  *Drafter
	source  *Predictors
	seen    []int // rows of drafts by predictor
	depths  map[int]bool
}

func newChain(t *testing.T, n, context int, chained bool) *chain {
	x := &chain{t: t, chained: chained, seen: make([]int, n), depths: map[int]bool{}}
	var of []*method.Module
	for p := range n {
		m := growtest.Cycle(8, 3)
		m.Dims = method.Size{Vocabulary: 8, Layers: 1, Width: 1, Context: context, Rows: 16}
		m.State = func(path []token.ID) []float32 { return []float32{float32(1000*(p+1) + len(path))} }
		next := m.Next
		m.Next = func(path []token.ID, r forest.Row) []float32 {
			x.look(p, path, r)
			return next(path, r)
		}
		x.models = append(x.models, &busy{Model: m})
		of = append(of, &method.Module{Model: x.models[p], Module: forest.Module{Family: "mtp", FeedsState: true, Chained: chained}})
	}
	of[0].Next = of[1:]
	x.source = NewPredictors(of[0], 8)
	x.drafts = NewDrafter(grow.Shape{Growth: grow.Fixed, Ranks: []int{2, 2, 1, 1, 1, 1}, Beam: 3}, x.source, of[0], 8)
	return x
}

// look compares a row that gives logits with what the predictor is to read: a path of p rows fewer than that of the first, whose tokens are the text's and then drafts,
// and a feature of the text, of the predictor before, or of the row before.
func (x *chain) look(p int, path []token.ID, r forest.Row) {
	x.t.Helper()
	text := x.ids[x.first+1+p:]
	depth := len(path) - len(text)
	if depth < 0 || !slices.Equal(path[:len(text)], text) {
		x.t.Errorf("predictor %d: the path %v behind the text %v", p, path, text)
		return
	}
	if depth > 0 {
		x.seen[p]++
		x.depths[depth] = true
		if p != min(depth, x.source.ready-1) {
			x.t.Errorf("predictor %d drafts behind %d drafts; %d are ready", p, depth, x.source.ready)
		}
	}
	want := float32(x.first + len(path) - 1)
	switch {
	case depth > p:
		want = float32(1000*(p+1) + len(path) - 1)
	case x.chained && p > 0:
		want = float32(1000*p + len(path))
	}
	if r.Vector[0] != want {
		x.t.Errorf("predictor %d, behind %d drafts: feature %v, want %v", p, depth, r.Vector[0], want)
	}
}

// round adds n tokens to the text, tells their features, and drafts.
func (x *chain) round(n int) int {
	x.t.Helper()
	for range n {
		x.ids = append(x.ids, token.ID((len(x.ids)*3+len(x.ids)/5)%8))
	}
	if x.told == 0 {
		x.h.Begin(x.ids, len(x.ids))
		if err := x.drafts.Begin(&x.h); err != nil {
			x.t.Fatal(err)
		}
		x.told = x.first
	} else {
		x.h.Extend(x.ids)
	}
	var u method.Update
	for at := x.told; at < len(x.ids)-1; at++ {
		u.Rows = append(u.Rows, method.RowResult{ID: x.ids[at], At: int32(at), Accepted: true, Result: compute.Result{State: []float32{float32(at)}}})
	}
	x.told = len(x.ids) - 1
	x.drafts.Committed(u)
	t := method.NewTree(32, 8)
	t.Reset(20, method.NewRates(1))
	if err := x.drafts.Draft(x.t.Context(), t); err != nil {
		x.t.Fatal(err)
	}
	return t.Len()
}

// TestPredictors drafts with the predictors of a file, one to four, and looks at what each of their rows reads.
func TestPredictors(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, chained := range []bool{false, true} {
			x := newChain(t, n, 64, chained)
			x.first = 2
			x.told = 0
			for _, more := range []int{9, 1, 3, 1, 1, 5, 2} {
				if x.round(more) == 0 {
					t.Errorf("%d predictors, chained %v: no drafts behind %d tokens", n, chained, len(x.ids))
				}
			}
			if slices.Contains(x.seen[1:], 0) || !x.depths[5] {
				t.Errorf("%d predictors, chained %v: rows of drafts %v, depths %v", n, chained, x.seen, x.depths)
			}
			for p, s := range x.source.sources {
				if got := len(s.Trunk.(*growtest.Sequence).Trunk); got != len(x.ids)-1-p-x.first {
					t.Errorf("predictor %d of %d: %d rows of %d tokens", p, n, got, len(x.ids))
				}
			}
			if err := x.drafts.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPredictorsBusy: while no slot is free for a predictor, those before it draft, and it takes part again afterwards.
func TestPredictorsBusy(t *testing.T) {
	for _, chained := range []bool{false, true} {
		x := newChain(t, 3, 64, chained)
		x.models[1].is = true
		for range 3 {
			if x.round(4); x.source.ready != 1 {
				t.Errorf("chained %v: %d predictors draft", chained, x.source.ready)
			}
		}
		x.models[1].is = false
		if x.round(2); x.source.ready != 3 {
			t.Errorf("chained %v: %d predictors draft again", chained, x.source.ready)
		}
	}
}

// TestPredictorsShort: behind few tokens the first predictors draft alone.
func TestPredictorsShort(t *testing.T) {
	x := newChain(t, 4, 64, false)
	if x.round(2); x.source.ready != 2 {
		t.Errorf("behind two tokens %d predictors draft", x.source.ready)
	}
	if x.round(3); x.source.ready != 4 {
		t.Errorf("behind five tokens %d predictors draft", x.source.ready)
	}
}

// TestPredictorsOutgrown: texts outgrow the module's context; a predictor has rows within it all the time.
func TestPredictorsOutgrown(t *testing.T) {
	for _, chained := range []bool{false, true} {
		x := newChain(t, 3, 24, chained)
		for i := range x.models {
			m := x.models[i].Model
			m.Next = growtest.Cycle(8, 3).Next // paths begin anew
		}
		for range 40 {
			x.round(3)
			for p, s := range x.source.sources {
				if n := len(s.Trunk.(*growtest.Sequence).Trunk); n > 24 {
					t.Fatalf("predictor %d has %d rows", p, n)
				}
			}
		}
	}
}
