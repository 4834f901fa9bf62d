package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/par"
	"grove/internal/weights/tensor"
	"grove/method"
)

// TestExtraRows: a drafter puts vectors behind the text and behind drafts. The text is that of plain decoding, a row with the embedding of a draft gives the
// logits of the draft's row behind the same token, and only what hangs from the last accepted draft comes back.
func TestExtraRows(t *testing.T) {
	want := forest.Want{Logits: true}
	var same, behind int
	d := func() *drafter {
		embedding, rounds := make([]float32, 0, 64), 0
		return &drafter{
			wants: method.Wants{Rows: forest.Want{Logits: true}},
			draft: func(d *drafter, tree *method.Tree) {
				answer := d.answer(len(d.h.IDs()))
				if len(answer) == 0 {
					return
				}
				id := answer[0]
				if rounds++; rounds%2 == 0 {
					id = (id + 1) % 48 // it is rejected
				}
				row := method.Row{Row: forest.Row{ID: id, Skip: forest.LayerRange(0, 4), Want: forest.Want{Hidden: forest.LayerRange(3, 4)}}}
				got, err := d.own.Grow(context.Background(), []method.Row{row})
				if errors.Is(err, method.ErrPreempted) {
					return
				}
				if err != nil {
					panic(err)
				}
				embedding = append(embedding[:0], got[0].Hidden[0]...)
				if err := d.own.Drop(); err != nil {
					panic(err)
				}
				at := tree.Add(method.Root, id, 0, 0.9)
				first := tree.AddExtra(method.Root, method.Root, forest.Row{Vector: embedding, Want: want})
				tree.AddExtra(method.Root, first, forest.Row{Vector: embedding, Want: want})
				if at != method.Root {
					tree.AddExtra(at, method.Root, forest.Row{Vector: embedding, Want: want})
				}
			},
			rows: func(_ *drafter, r method.Update) {
				if len(r.Extra) == 0 || len(r.Rows) != 2 {
					return
				}
				switch accepted := r.Rows[1].Accepted; {
				case accepted && (len(r.Extra) != 1 || r.Extra[0].Extra != 2):
					t.Errorf("behind an accepted draft: %d extra rows came back", len(r.Extra))
				case accepted:
					behind++
				case len(r.Extra) != 2 || r.Extra[0].Extra != 0 || r.Extra[1].Index != r.Extra[0].Index+1:
					t.Errorf("behind a rejected draft: %d extra rows came back", len(r.Extra))
				case !slices.Equal(r.Extra[0].Logits, r.Rows[1].Logits) || slices.Equal(r.Extra[1].Logits, r.Extra[0].Logits):
					t.Error("the row of an embedding is not that of its token")
				default:
					same++
				}
			},
		}
	}
	for _, eager := range []bool{true, false} {
		same, behind = 0, 0
		if st := among(t, deep(t), d, eager); eager && (st.Accepted < 10 || same < 10 || behind < 10) {
			t.Errorf("%d accepted; %d and %d rounds with extra rows", st.Accepted, same, behind)
		}
	}
}

// identity returns a matrix of weights that leaves a stream as it is.
func identity(t *testing.T, width int) *weight.Matrix {
	t.Helper()
	v := tensor.View{Name: "identity", Type: tensor.F32, Shape: []int{width, width}, Data: make([]byte, 4*width*width)}
	for i := range width {
		binary.LittleEndian.PutUint32(v.Data[4*i*(width+1):], math.Float32bits(1))
	}
	pool := par.New(1)
	defer pool.Close()
	m, err := weight.New(pool, nil).Matrix(v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestExtraProducts: rows begin at a layer as products of the row that they stand behind. Of the last token's, which a drafter has run up to a layer, none
// begins below; of a draft's, which is run anew, it does. The text is that of plain decoding.
func TestExtraProducts(t *testing.T) {
	m := identity(t, 64)
	begins := func(layer int) forest.Row {
		return forest.Row{Through: m, Skip: forest.LayerRange(0, layer), Want: forest.Want{Logits: true}}
	}
	for _, c := range []struct{ exit, came int }{{0, 3}, {2, 2}, {3, 1}} {
		var most, behind int
		d := func() *drafter {
			rounds := 0
			return &drafter{
				draft: func(d *drafter, tree *method.Tree) {
					if c.exit > 0 {
						row := method.Row{Row: forest.Row{ID: d.h.Last(0), To: c.exit, Want: forest.Want{Hidden: forest.LayerRange(0, 1)}}}
						got, err := d.own.Grow(context.Background(), []method.Row{row})
						if errors.Is(err, method.ErrPreempted) || errors.Is(err, forest.ErrScratch) {
							return
						}
						if err != nil {
							panic(err)
						}
						tree.Resume(method.Root, method.Live{Node: got[0].Node, Parent: forest.Trunk, Layer: c.exit})
					}
					for _, layer := range []int{1, 2, 3} {
						tree.AddExtra(method.Root, method.Root, begins(layer))
					}
					if rounds++; rounds%2 == 0 && len(d.answer(len(d.h.IDs()))) > 0 {
						if at := tree.Add(method.Root, d.answer(len(d.h.IDs()))[0], 0, 0.9); at != method.Root {
							tree.AddExtra(at, method.Root, begins(1))
						}
					}
				},
				rows: func(_ *drafter, r method.Update) {
					if len(r.Extra) == 1 && r.Extra[0].Extra == 3 {
						behind++
						return
					}
					most = max(most, len(r.Extra))
					for i := range r.Extra {
						if c.exit > 0 && int(r.Extra[i].Extra) < c.exit-1 {
							t.Errorf("a row that begins at layer %d of one that was taken on from layer %d", r.Extra[i].Extra+1, c.exit)
						}
					}
				},
			}
		}
		if among(t, deep(t), d, true); most != c.came || behind < 10 {
			t.Errorf("the last token's row is taken on from layer %d: %d rows at most, want %d; %d behind drafts", c.exit, most, c.came, behind)
		}
	}
}

// TestExtraRoom: many extra rows take no place of drafts, and a vector of another width and a matrix that has no weights fail no text.
func TestExtraRoom(t *testing.T) {
	for name, row := range map[string]forest.Row{
		"many": {Vector: make([]float32, 64)}, "narrow": {Vector: make([]float32, 3)}, "no weights": {Through: square(64), Skip: forest.LayerRange(0, 2)},
	} {
		row.Want = forest.Want{Logits: true}
		d := func() *drafter {
			return &drafter{draft: func(d *drafter, tree *method.Tree) {
				copies(d, tree)
				for at := method.Root; at < tree.Len(); at++ {
					for range 40 {
						tree.AddExtra(at, method.Root, row)
					}
				}
				if n := len(tree.Extras()); n > method.MaxLive {
					t.Errorf("%d extra rows", n)
				}
			}}
		}
		st := among(t, deep(t), d, true)
		if name == "many" && st.Accepted < 20 {
			t.Errorf("%s: %d accepted", name, st.Accepted)
		}
	}
}

// square is a matrix of so many inputs and outputs that package compute does not know.
type square int

func (s square) In() int  { return int(s) }
func (s square) Out() int { return int(s) }
