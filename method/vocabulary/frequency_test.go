package vocabulary

import (
	"math"
	"slices"
	"testing"

	"grove/internal/text/token"
)

// TestCoverage: the share of texts rises with the groups that are kept, to all of them at the number of different groups in the texts.
func TestCoverage(t *testing.T) {
	const g = Group
	f := New(20*g-3, nil)
	if u := f.Unseen(); u != 1 {
		t.Errorf("%v of texts is not seen before the first", u)
	}
	f.Order()
	check := func(unseen float64, whole int) {
		t.Helper()
		last := 0.0
		coverage := f.Coverage(nil, unseen)
		for i, c := range coverage {
			if c < last {
				t.Errorf("the share falls from %v to %v at %d groups", last, c, i+1)
			}
			last = c
		}
		if at := slices.IndexFunc(coverage, func(c float64) bool { return c > 1-1e-12 }); at+1 != whole || math.Abs(last-1) > 1e-12 {
			t.Errorf("unseen %v: all texts at %d groups, want %d; %v at the last", unseen, at+1, whole, last)
		}
	}
	check(1, 20)
	for i, id := range []token.ID{5 * g, 5*g + 1, 5*g + 2, 17 * g, 17 * g, 3, 8 * g} {
		if !f.Count(id) {
			t.Errorf("token %d is not counted", i)
		}
	}
	for _, id := range []token.ID{-1, 20 * g, math.MaxInt32} {
		if f.Count(id) {
			t.Errorf("token %d of no vocabulary is counted", id)
		}
	}
	if order := f.Order(); !slices.Equal(order[:5], []int32{5, 17, 0, 8, 1}) {
		t.Errorf("order %v", order)
	}
	if u := f.Unseen(); u != 3.0/8 {
		t.Errorf("%v of texts is not seen, want 3/8: two groups were counted once", u)
	}
	check(0, 4)
	check(f.Unseen(), 20)
	f.Always(9 * g)
	if order := f.Order(); order[0] != 9 {
		t.Errorf("what is kept in any case is behind %d", order[0])
	}
	check(0, 5) // the group that was not counted is the first
	if again := New(20*g-3, f.Counts()); !slices.Equal(again.Counts(), f.Counts()) || again.total != 7 {
		t.Errorf("%v taken over: %v", f.Counts(), again.Counts())
	}
	if other := New(19*g, f.Counts()); other.total != 0 {
		t.Error("counts of another vocabulary are taken over")
	}
	if many := New(g, []uint32{math.MaxUint32}); many.total >= forgetAfter {
		t.Errorf("%d tokens are counted", many.total)
	}
}
