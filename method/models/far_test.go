package models

import (
	"context"
	"slices"
	"testing"
	"time"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// remote says what it was told, and gives drafts.
type remote struct {
	begun, accepted, rows int
	text, drafts          []token.ID
}

func (r *remote) Begin(h *method.History) { r.begun++; r.text = slices.Clone(h.IDs()) }

func (r *remote) Committed(ids []token.ID, accepted, rows int, step time.Duration) {
	r.text, r.accepted, r.rows = append(r.text, ids...), accepted, rows
}

func (r *remote) Drafts(_ context.Context, dst []token.ID) []token.ID {
	return append(dst, r.drafts...)
}

// TestDrafts takes the drafts that there are as a chain, and tells what became of them.
func TestDrafts(t *testing.T) {
	r := &remote{drafts: []token.ID{3, 4, 99, 5}}
	d := &farDrafter{}
	h := &method.History{Remote: r}
	h.Begin([]token.ID{1, 2}, 2)
	if err := d.Begin(h); err != nil || r.begun != 1 || !slices.Equal(r.text, []token.ID{1, 2}) {
		t.Fatalf("%+v %v", r, err)
	}
	tree := method.NewTree(8, 10)
	rates := method.NewRates(1)
	tree.Reset(8, rates)
	if err := d.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if got := growtest.IDs(tree); !slices.Equal(got, []token.ID{3, 4}) { // 99 is no token: the chain ends before it
		t.Errorf("drafts %v", got)
	}
	d.Committed(method.Update{IDs: []token.ID{3, 7}})
	if r.accepted != 1 || r.rows != 3 || !slices.Equal(r.text, []token.ID{1, 2, 3, 7}) {
		t.Errorf("%+v", r)
	}
	d.Committed(method.Update{IDs: []token.ID{8}}) // which the caller added
	if r.accepted != 0 || r.rows != 0 || len(r.text) != 5 {
		t.Errorf("%+v", r)
	}
	if n := testing.AllocsPerRun(20, func() {
		tree.Reset(8, rates)
		_ = d.Draft(t.Context(), tree)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
	if err := d.Begin(&method.History{}); err != nil {
		t.Fatal(err)
	}
	tree.Reset(8, rates)
	if err := d.Draft(t.Context(), tree); err != nil || tree.Len() > 0 {
		t.Errorf("%d drafts of none, %v", tree.Len(), err)
	}
	d.Committed(method.Update{IDs: []token.ID{8}})
}
