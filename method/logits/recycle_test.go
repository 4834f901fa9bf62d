package logits

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

func row(id token.ID, parent int32, accepted bool, top ...token.ID) method.RowResult {
	o := method.RowResult{ID: id, Parent: parent, Accepted: accepted}
	for i, t := range top {
		o.Top = append(o.Top, compute.TopEntry{ID: t, Logit: float32(-i)})
	}
	return o
}

// recycleSaw tells of a round.
func recycleSaw(d *recycleDrafter, rows ...method.RowResult) {
	d.Committed(method.Update{Rows: rows, Before: token.None})
}

func openRecycle(t *testing.T, vocabulary int) *recycleDrafter {
	t.Helper()
	d := growtest.Drafter(t, "recycle", method.Env{Vocabulary: vocabulary})
	return d.(*recycleDrafter)
}

// paths returns the drafts behind a text of one token as paths from the root.
func paths(t *testing.T, d *recycleDrafter, last token.ID, nodes int, floor float32) (all [][]token.ID) {
	t.Helper()
	x := growtest.Text{Drafter: d}
	x.Begin(t, last)
	tree := method.NewTree(nodes, 1000)
	tree.Floor = floor
	tree.Reset(64, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	for i, n := range tree.Nodes() {
		if int(n.Parent) >= i {
			t.Fatalf("draft %d precedes its parent %d", i, n.Parent)
		}
		var path []token.ID
		if n.Parent != method.Root {
			path = append(path, all[n.Parent]...)
		}
		all = append(all, append(path, n.ID))
	}
	return all
}

// TestToy follows the toy of two successors: what is drafted, and which rows a round writes.
func TestToy(t *testing.T) {
	d := openRecycle(t, 20)
	if got := paths(t, d, 5, 48, 0); got != nil {
		t.Errorf("nothing was seen: %v", got)
	}
	recycleSaw(d, row(5, -1, true, 7, 9))
	recycleSaw(d, row(7, -1, true, 2, 3), row(9, 0, false, 4, 8))
	recycleSaw(d, row(8, -1, true, 1))
	// The likeliest first: 0.3, then 0.1 behind the root and 0.09 behind 7.
	want := [][]token.ID{{7}, {9}, {7, 2}, {7, 3}, {9, 4}, {9, 8}, {9, 8, 1}}
	if got := paths(t, d, 5, 48, 0); !cmp.Equal(got, want) {
		t.Errorf("behind 5: %v, want %v", got, want)
	}
	if got := paths(t, d, 5, 3, 0); !cmp.Equal(got, want[:3]) {
		t.Errorf("a tree of three: %v, want %v", got, want[:3])
	}
	if got := paths(t, d, 5, 48, 0.08); !cmp.Equal(got, want[:3]) {
		t.Errorf("nothing below 0.08: %v, want %v", got, want[:3])
	}
	recycleSaw(d, row(5, -1, true, 9, 7), row(7, 0, false, 3, 2), row(9, 0, true, 4, 6), row(2, 1, false, 1), row(4, 2, true, 6, 1))
	want = [][]token.ID{{9}, {7}, {9, 4}, {9, 6}, {7, 3}, {7, 2}, {9, 4, 6}, {9, 4, 1}, {7, 2, 1}}
	if got := paths(t, d, 5, 48, 0); !cmp.Equal(got, want) {
		t.Errorf("after a round: %v, want %v", got, want)
	}
	if got := paths(t, d, 8, 48, 0); !cmp.Equal(got, [][]token.ID{{1}}) {
		t.Errorf("8 was not run again: %v", got)
	}
}

// TestBounds: a token that follows itself makes a path of the greatest depth, eight successors of everything a tree of
// the greatest size, and another drafter of the method knows what this one saw.
func TestBounds(t *testing.T) {
	d := openRecycle(t, 20)
	recycleSaw(d, row(1, -1, true, 1))
	if got := paths(t, d, 1, 128, 0); len(got) != recycleDeepest || len(got[recycleDeepest-1]) != recycleDeepest {
		t.Errorf("a path of %v", got)
	}
	for id := range token.ID(20) {
		recycleSaw(d, row(id, -1, true, 1, 2, 3, 4, 5, 6, 7, 8))
	}
	other, err := recycle{d.known}.NewDrafter(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := paths(t, other.(*recycleDrafter), 3, 128, 0); len(got) != most {
		t.Errorf("%d drafts, want %d", len(got), most)
	}
	x := growtest.Text{Drafter: d}
	x.Begin(t)
	if n := x.Draft(t, 64).Len(); n > 0 || paths(t, d, token.None, 128, 0) != nil {
		t.Errorf("%d drafts behind no text", n)
	}
}
