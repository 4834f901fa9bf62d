package layers

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"grove/forest"
)

// ratio is the share of layers that SWIFT passes over.
const ratio = 0.45

// TestSets holds the sets that are tried to their size and to the layers that may be passed over.
func TestSets(t *testing.T) {
	for layers, size := range map[int]int{3: 1, 4: 1, 5: 1, 6: 2, 12: 5, 32: 14, 128: 57} {
		s := NewSearch(layers, ratio)
		first := []int{1, 3, 5}
		for _, l := range first[:min(size, len(first))] {
			if !s.best.Has(l) {
				t.Errorf("%d layers: layer %d is not passed over at first", layers, l)
			}
		}
		tried := map[forest.Layers]bool{}
		for range 40 {
			now := s.Next()
			for _, set := range []forest.Layers{now.Best, now.Other} {
				if (now.Open || set == now.Best) && (set.Len() != size || set.Has(0) || set.Has(layers-1)) {
					t.Fatalf("%d layers: a set of %d that begins %x, want %d", layers, set.Len(), set[0], size)
				}
			}
			if now.Open && now.Other == now.Best {
				t.Fatalf("%d layers: the best set is tried against itself", layers)
			}
			tried[now.Other] = true
			for range window {
				s.Count(now, true, false)
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
	s := NewSearch(12, ratio)
	play := func(best, other int) (won bool) {
		now := s.Next()
		for i := range window {
			s.Count(now, i < best, i < other)
		}
		s.Count(now, true, true) // too late
		if s.seen != 0 || s.number != now.number+1 {
			t.Fatalf("trial %d with %d places", s.number, s.seen)
		}
		if kept := max(best, other); s.score != float64(kept)/window {
			t.Errorf("%d against %d: score %v", best, other, s.score)
		}
		return s.Next().Best == now.Other
	}
	for _, c := range []struct {
		best, other int
		won         bool
	}{{10, 10, false}, {10, 9, false}, {10, 11, true}, {3, 2, false}, {0, 20, true}} {
		if won := play(c.best, c.other); won != c.won {
			t.Errorf("%d against %d: won %v", c.best, c.other, won)
		}
	}
	if play(31, 0); s.Next().Open {
		t.Error("the search goes on after 31 of 32")
	}
	s = NewSearch(12, ratio)
	for range maxFailedTrials {
		if !s.Next().Open {
			t.Fatal("the search ended early")
		}
		play(5, 5)
	}
	if s.Next().Open {
		t.Error("the search goes on without success")
	}
}

// TestSaved refuses records that make no sense, and keeps its own set then.
func TestSaved(t *testing.T) {
	b, _ := NewSearch(12, ratio).MarshalBinary()
	set := func(at int, v byte) []byte { c := slices.Clone(b); c[at] = v; return c }
	for name, bad := range map[string][]byte{
		"nothing": nil, "a part": b[:len(b)-1], "more": append(slices.Clone(b), 0), "other layers": set(0, 13), "the first layer": set(4, b[4]&^2|1),
		"a larger set": set(4, b[4]|4), "a layer beyond": set(12, 1),
		"no score": append(binary.LittleEndian.AppendUint64(slices.Clone(b[:20]), math.Float64bits(math.NaN())), 1),
	} {
		s := NewSearch(12, ratio)
		before := s.Next()
		if err := s.UnmarshalBinary(bad); err == nil || s.Next() != before {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzRecord reads hostile records of a search: what is taken over is a set of layers that may be skipped.
func FuzzRecord(f *testing.F) {
	const layers = 12
	good, err := NewSearch(layers, 0.4).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[1:])
	f.Add(append(bytes.Clone(good), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewSearch(layers, 0.4)
		if s.UnmarshalBinary(b) != nil {
			return
		}
		if s.best.Len() != s.size || s.best.Has(0) || s.best.Has(layers-1) || !(s.score >= 0 && s.score <= 1) {
			t.Errorf("layers %x, score %v", s.best, s.score)
		}
	})
}

// TestLargeSets: where more than every other layer is passed over, the search begins with the odd layers and the first even ones.
func TestLargeSets(t *testing.T) {
	s := NewSearch(12, 0.7)
	want := forest.Layers{}.With(2).With(4)
	for _, l := range []int{1, 3, 5, 7, 9} {
		want = want.With(l)
	}
	if got := s.Next(); got.Best != want || !got.Open {
		t.Errorf("%+v, want %x", got, want)
	}
	if got := NewSearch(12, 1).Next(); got.Best != forest.LayerRange(1, 11) || got.Open {
		t.Errorf("all: %+v", got)
	}
}
