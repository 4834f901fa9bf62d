package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"grove/forest"
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
				first := tree.AddExtra(method.Root, method.Root, embedding, want)
				tree.AddExtra(method.Root, first, embedding, want)
				if at != method.Root {
					tree.AddExtra(at, method.Root, embedding, want)
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

// TestExtraRoom: many extra rows take no place of drafts, and a vector of another width fails no text.
func TestExtraRoom(t *testing.T) {
	for name, vector := range map[string][]float32{"many": make([]float32, 64), "narrow": make([]float32, 3)} {
		d := func() *drafter {
			return &drafter{draft: func(d *drafter, tree *method.Tree) {
				copies(d, tree)
				for at := method.Root; at < tree.Len(); at++ {
					for range 40 {
						tree.AddExtra(at, method.Root, vector, forest.Want{Logits: true})
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
