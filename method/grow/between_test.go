package grow

import (
	"math"
	"testing"
)

// TestBetween: a chain ends at its depth, and behind a draft below the mean of the average probabilities of rejected and accepted drafts.
func TestBetween(t *testing.T) {
	s := &Between{Depth: 4}
	s.Begin()
	chain := func(p ...float32) (n int) {
		for n < len(p) && !s.Ends(ChainDraft{Depth: n + 1, P: p[n]}) {
			n++
		}
		return n + 1
	}
	for _, c := range []struct {
		name             string
		p                []float32
		made             int
		judged, accepted int
		least            float64 // behind the round
	}{
		{"nothing is known", []float32{0.1, 0.2, 0.9, 0.8, 0.7}, 4, 4, 4, 0},                                 // accepted: 0.5
		{"no rejected draft is known", []float32{0.9, 0.1, 0.3, 0.3}, 4, 2, 1, (0.1 + 0.580769) / 2},         // (2*0.95 + 0.9) / (4*0.95 + 1)
		{"between", []float32{0.9, 0.35, 0.3, 0.9}, 3, 3, 2, (0.2025641 + 0.590634) / 2},                     // of 0.3 and 0.1*0.95; of 2.66+1.25 and 4.56+2
		{"the others were not compared", []float32{0.9, 0.9, 0.9, 0.9}, 4, 1, 1, (0.2025641 + 0.630698) / 2}, // of 3.7145+0.9 and 6.232+1, about
	} {
		if n := chain(c.p...); n != c.made {
			t.Errorf("%s: %d drafts, want %d", c.name, n, c.made)
		}
		s.Followed(c.made, c.judged, c.accepted)
		if s.Judged != c.judged || s.Accepted != c.accepted || math.Abs(float64(s.least())-c.least) > 6e-3 {
			t.Errorf("%s: %+v, ends below %v; want %v", c.name, s, s.least(), c.least)
		}
	}
	s.Depth = 1
	if n := chain(0.9); n != 1 {
		t.Errorf("%d drafts of one", n)
	}
	if s.Begin(); s.least() != 0 || s.Judged != 0 {
		t.Error("a new text begins with another's")
	}
	s.Followed(0, 0, 0)
	s.Ends(ChainDraft{Depth: 1, P: 0.9})
	s.Ends(ChainDraft{Depth: 2, P: 0.2})
	if s.Followed(2, 2, 1); s.least() == 0 {
		t.Error("nothing is between 0.2 and 0.9")
	}
	s.Begin()
	s.Ends(ChainDraft{Depth: 1, P: 0.2})
	s.Ends(ChainDraft{Depth: 2, P: 0.9})
	if s.Followed(2, 2, 1); s.least() != 0 {
		t.Error("rejected drafts were surer than accepted ones")
	}
}
