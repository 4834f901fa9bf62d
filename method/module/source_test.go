package module

import (
	"context"
	"errors"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// busy is a model without a free slot, while it says so.
type busy struct {
	*growtest.Model
	is bool
}

func (b *busy) Open() (method.Branch, error) {
	if b.is {
		return nil, method.ErrBusy
	}
	return b.Model.Open()
}

// modular is a text that a module drafts for. A feature is the token that it is of, and its place, so that the module can see that its rows are pairs of neighbours.
type modular struct {
	t      *testing.T
	model  *busy
	source *Source
	drafts *Drafter
	h      method.History
	ids    []token.ID
	told   int // tokens whose features were told
	off    int // by how many places features are told wrongly
	pairs  int // rows that were pairs of neighbours
	wrong  int
}

// newModular makes a text of period 2 and a module of a context.
func newModular(t *testing.T, context int) *modular {
	x := &modular{t: t}
	m := growtest.Cycle(8, 3)
	m.Dims = method.Size{Vocabulary: 8, Layers: 1, Width: 2, Context: context, Rows: 5}
	m.State = func(path []token.ID) []float32 { return []float32{float32(path[len(path)-1]), -1} }
	next := m.Next
	m.Next = func(path []token.ID, r forest.Row) []float32 {
		x.look(path, r)
		return next(path, r)
	}
	x.model = &busy{Model: m}
	of := &method.Module{Model: x.model, Module: forest.Module{Family: "eagle", FeedsState: true}}
	x.source = NewSource(of, 8)
	x.drafts = NewDrafter(grow.Shape{Growth: grow.Fixed, Ranks: []int{2, 1, 1}, Beam: 2}, x.source, of, 8)
	return x
}

// look checks a row whose logits are wanted: its feature is that of the token before it, or what the row before it gave.
func (x *modular) look(path []token.ID, r forest.Row) {
	x.pairs++
	at := int(r.Vector[1])
	if at < 0 && r.Vector[0] != float32(path[len(path)-2]) {
		x.wrong++
	}
	if at >= 0 && (at+1 >= len(x.ids) || x.ids[at+1] != r.ID || float32(x.ids[at]) != r.Vector[0] || at != len(x.ids)-2) {
		x.wrong++
	}
}

// begin starts a text of n tokens of period 2.
func (x *modular) begin(n int) {
	x.ids, x.told = slices.Repeat([]token.ID{3, 5}, n)[:n], 0
	x.h.Begin(x.ids, n)
	if err := x.drafts.Begin(&x.h); err != nil {
		x.t.Fatal(err)
	}
}

// add adds n tokens.
func (x *modular) add(n int) {
	for range n {
		x.ids = append(x.ids, []token.ID{3, 5}[len(x.ids)%2])
	}
	x.h.Extend(x.ids)
}

// tell tells the features of the text's tokens from a place on.
func (x *modular) tell(from int) {
	var u method.Update
	for at := from; at < len(x.ids)-1; at++ {
		f := []float32{float32(x.ids[at]), float32(at + x.off)}
		u.Rows = append(u.Rows, method.RowResult{ID: x.ids[at], At: int32(at), Accepted: true, Result: compute.Result{State: f}})
		u.Rows = append(u.Rows, method.RowResult{ID: 7, At: int32(at), Result: compute.Result{State: []float32{7, 7}}}) // a draft that was not accepted
	}
	x.drafts.Committed(u)
	x.told = len(x.ids) - 1
}

// draft returns how many drafts there are.
func (x *modular) draft() int {
	x.t.Helper()
	n, err := x.try()
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

func (x *modular) try() (int, error) {
	t := method.NewTree(32, 8)
	t.Reset(6, method.NewRates(1))
	err := x.drafts.Draft(x.t.Context(), t)
	return t.Len(), err
}

// trunk returns the tokens of the module's trunk.
func (x *modular) trunk() []token.ID {
	if x.source.Trunk == nil {
		return nil
	}
	return x.source.Trunk.(*growtest.Sequence).Trunk
}

// round adds n tokens, tells their features, and expects drafts and the trunk to hold the last tokens of the text.
func (x *modular) round(n int) {
	x.t.Helper()
	x.add(n)
	x.tell(x.told)
	if x.draft() == 0 {
		x.t.Fatalf("no drafts behind %d tokens", len(x.ids))
	}
	if got := x.trunk(); len(got) == 0 || len(got) > x.model.Dims.Context || !slices.Equal(got, x.ids[len(x.ids)-len(got):]) {
		x.t.Fatalf("a trunk of %v behind %v", got, x.ids)
	}
}

func TestSource(t *testing.T) {
	cases := map[string]func(x *modular){
		"rounds follow a prompt": func(x *modular) {
			x.begin(12)
			for n := range 5 {
				x.round(1 + n)
			}
			if n := len(x.trunk()); n != len(x.ids)-1 {
				x.t.Errorf("%d rows of %d tokens", n, len(x.ids))
			}
		},
		"a prefix without features": func(x *modular) {
			x.begin(12)
			x.told = 9
			x.round(1)
			x.round(3)
			if n := len(x.trunk()); n != len(x.ids)-1-9 {
				x.t.Errorf("%d rows", n)
			}
		},
		"a gap": func(x *modular) {
			x.begin(6)
			x.round(1)
			x.add(2)
			x.told += 1 // of one token the feature is not told
			x.tell(x.told)
			x.draft()
			if n := len(x.trunk()); n != 1 {
				x.t.Errorf("%d rows behind the gap", n)
			}
			x.round(2)
		},
		"rows that run again": func(x *modular) {
			x.begin(6)
			x.round(1)
			x.add(1)
			x.tell(2)
			x.draft()
			if n := len(x.trunk()); n != len(x.ids)-1 {
				x.t.Errorf("%d rows", n)
			}
		},
		"no slot is free": func(x *modular) {
			x.model.is = true
			x.begin(6)
			x.add(1)
			x.tell(0)
			if n := x.draft(); n != 0 {
				x.t.Errorf("%d drafts without a slot", n)
			}
			x.model.is = false
			x.round(2)
			if n := len(x.trunk()); n != len(x.ids)-1 {
				x.t.Errorf("%d rows", n)
			}
		},
		"a text outgrows the context": func(x *modular) {
			x.begin(4)
			for range 60 {
				x.round(1)
			}
		},
		"a prompt is longer than the context": func(x *modular) {
			x.begin(90)
			x.round(1)
			x.round(1)
		},
		"features wait": func(x *modular) {
			x.begin(4)
			x.round(1)
			for range 300 {
				x.add(1)
				x.tell(x.told)
			}
			if n, most := x.source.waiting(), 2*x.model.Dims.Context; n > most {
				x.t.Errorf("features of %d tokens wait, %d at most", n, most)
			}
			x.round(1)
		},
		"a step fails": func(x *modular) {
			x.begin(12)
			x.add(1)
			x.tell(0)
			x.model.Fail = errors.New("broken")
			if _, err := x.try(); !errors.Is(err, x.model.Fail) {
				x.t.Errorf("error %v", err)
			}
			x.model.Fail = nil
			if x.draft() == 0 {
				x.t.Error("no drafts once steps work")
			}
			if n := len(x.trunk()); n != len(x.ids)-1 {
				x.t.Errorf("%d rows", n)
			}
		},
		"another text": func(x *modular) {
			x.begin(12)
			x.round(1)
			x.begin(7)
			x.round(1)
			if n := len(x.trunk()); n != len(x.ids)-1 {
				x.t.Errorf("%d rows", n)
			}
		},
		"nothing is known": func(x *modular) {
			x.begin(12)
			x.add(1)
			if n := x.draft(); n != 0 {
				x.t.Errorf("%d drafts", n)
			}
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			x := newModular(t, 31)
			run(x)
			if x.wrong > 0 {
				t.Errorf("%d of %d rows are no pairs of neighbours", x.wrong, x.pairs)
			}
			if err := x.drafts.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestModuleFailsBetween lets the second step of a prompt's rows fail: what the first committed is not run again.
func TestFailsBetween(t *testing.T) {
	x := newModular(t, 31)
	x.begin(12)
	x.add(1)
	x.tell(0)
	s := x.model.Sequence()
	second := &failing{Sequence: s, at: 2}
	x.source.branch, x.source.Trunk = second, second
	if _, err := x.try(); !errors.Is(err, errBroken) || len(s.Trunk) != 5 {
		t.Fatalf("error %v, %d rows", err, len(s.Trunk))
	}
	x.add(1)
	x.tell(x.told)
	if n := len(x.model.Ran); x.draft() == 0 || !slices.Equal(s.Trunk, x.ids[1:]) || !slices.Equal(x.model.Ran[n:n+3], x.ids[6:9]) {
		t.Errorf("a trunk of %v behind %v", s.Trunk, x.ids)
	}
}

// failing is a sequence of which one step fails.
type failing struct {
	*growtest.Sequence
	at int
}

var errBroken = errors.New("broken")

func (f *failing) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	if f.at--; f.at == 0 {
		return nil, errBroken
	}
	return f.Sequence.Grow(ctx, rows)
}

// TestModuleShift tells features of the places beside: the pairs are none of neighbours. On a text of period 1 that would not show.
func TestShift(t *testing.T) {
	for _, off := range []int{-1, 1} {
		x := newModular(t, 31)
		x.off = off
		x.begin(12)
		x.round(1)
		if x.wrong == 0 {
			t.Errorf("features that are %d off are not seen", off)
		}
	}
}

// TestModuleAllocatesNothing drafts and commits in the steady state, besides what the scripted model allocates.
func TestAllocatesNothing(t *testing.T) {
	s := NewSource(&method.Module{Model: growtest.Cycle(8, 3), Module: forest.Module{FeedsState: true}}, 8)
	h := &method.History{}
	ids := slices.Repeat([]token.ID{3, 5}, 600)
	h.Begin(ids[:4], 4)
	if err := s.Begin(h); err != nil {
		t.Fatal(err)
	}
	rows, at := make([]method.RowResult, 1), 4
	state := make([]float32, 8)
	if n := testing.AllocsPerRun(200, func() {
		at++
		h.Extend(ids[:at])
		rows[0] = method.RowResult{ID: ids[at-2], At: int32(at - 2), Accepted: true, Result: compute.Result{State: state}}
		if err := s.Committed(method.Update{Rows: rows}); err != nil {
			t.Fatal(err)
		}
		s.features = s.features[:0] // as if they were rows
		s.known++
	}); n > 0 {
		t.Errorf("%v allocations a token", n)
	}
}

// TestDraftVocabulary spreads the logits of kept tokens: offsets 2, 4 and 4 stand for the ids 2, 5 and 6 of 8.
func TestDraftVocabulary(t *testing.T) {
	offsets := []token.ID{2, 4, 4}
	var kept []token.ID
	for id, d := range offsets {
		kept = append(kept, token.ID(id)+d)
	}
	got := Spread(make([]float32, 8), []float32{0.5, 0.25, 0.125}, kept)
	for id, l := range got {
		want := map[int]float32{2: 0.5, 5: 0.25, 6: 0.125}
		if w, ok := want[id]; ok && l != w || !ok && l != compute.Masked {
			t.Errorf("logit %d is %v", id, l)
		}
	}
}
