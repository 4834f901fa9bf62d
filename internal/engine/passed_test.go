package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/method"
)

// TestResumes: a row is taken further where the streams that are wanted of it are those behind the last layer that it has run, and later ones.
func TestResumes(t *testing.T) {
	at := func(layers ...int) (w forest.Want) {
		for _, l := range layers {
			w.Hidden = w.Hidden.With(l)
		}
		return w
	}
	for _, c := range []struct {
		name  string
		layer int
		want  forest.Want
		takes bool
	}{
		{"nothing", 2, forest.Want{}, true},
		{"the last layer run", 2, at(1), true},
		{"it and later ones", 2, at(1, 2, 3), true},
		{"a layer before", 2, at(0), false},
		{"both", 3, at(1, 2), false},
		{"one layer run", 1, at(0), true},
	} {
		if got := engine.Resumes(method.Live{Node: 7, Layer: c.layer}, c.want); got != c.takes {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestPassedStream: rows that are taken further give the stream behind the last layer that they had run, as the drafter saw it, and those that
// are run anew give the same.
func TestPassedStream(t *testing.T) {
	for _, layers := range []forest.Layers{forest.LayerRange(1, 2), forest.LayerRange(0, 2)} {
		var seen [][]float32 // of the round's rows
		compared := 0
		d := func() *drafter {
			exit, length := 2, 4
			return &drafter{
				wants: method.Wants{Rows: forest.Want{Hidden: layers}},
				draft: func(d *drafter, tree *method.Tree) {
					rows := []method.Row{{Row: forest.Row{ID: d.h.Last(0), To: exit, Want: forest.Want{Hidden: layers}}}}
					at := method.Root
					for _, id := range d.answer(len(d.h.IDs()))[:min(length, len(d.answer(len(d.h.IDs()))))] {
						if at = tree.Add(at, id, 0, 0.9); at == method.Root {
							break
						}
						rows = append(rows, method.Row{Row: forest.Row{ID: id, To: exit, Want: forest.Want{Hidden: layers}}, After: len(rows)})
					}
					seen = seen[:0]
					got, err := d.own.Grow(context.Background(), rows)
					if errors.Is(err, method.ErrPreempted) || errors.Is(err, forest.ErrScratch) {
						return
					}
					if err != nil {
						panic(err)
					}
					parent := forest.Trunk
					for i, r := range got {
						tree.Resume(i-1, method.Live{Node: r.Node, Parent: parent, Layer: exit}) // [method.Root] is -1
						parent, seen = r.Node, append(seen, slices.Concat(r.Hidden...))
					}
				},
				rows: func(_ *drafter, r method.Update) {
					for _, row := range r.Rows {
						if at := int(row.Node) + 1; at < len(seen) {
							if compared++; !slices.Equal(slices.Concat(row.Hidden...), seen[at]) {
								t.Errorf("row %d has another stream", at)
							}
						}
					}
				},
			}
		}
		if st := among(t, deep(t), d, true); st.Accepted < 20 || compared < 40 {
			t.Errorf("%d drafts accepted, %d streams compared", st.Accepted, compared)
		}
	}
}
