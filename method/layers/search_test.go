package layers

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/method"
)

// ratio is the share of layers that SWIFT passes over.
const ratio = 0.45

// TestSets holds the sets that are tried to their size and to the layers that may be passed over.
func TestSets(t *testing.T) {
	for layers, size := range map[int]int{3: 1, 4: 1, 5: 1, 6: 2, 12: 5, 32: 14, 128: 57} {
		s := NewSearch(layers, ratio)
		first := []int{1, 3, 5}
		for _, l := range first[:min(size, len(first))] {
			if !s.best[Attention].Has(l) || s.best != Whole(s.best[Attention]) {
				t.Errorf("%d layers: layer %d is not passed over at first", layers, l)
			}
		}
		tried := map[Set]bool{}
		for range 40 {
			now := s.Next()
			for _, set := range []Set{now.Best, now.Other} {
				if (now.Open || set == now.Best) && (set.Layers(0) != float64(size) || set.Within(1, layers-1) != set || set != Whole(set[Attention])) {
					t.Fatalf("%d layers: the set %s, want %d layers", layers, Format(set), size)
				}
			}
			if now.Open && now.Other == now.Best {
				t.Fatalf("%d layers: the best set is tried against itself", layers)
			}
			tried[now.Other] = true
			for range window {
				s.Count(now, true, false)
			}
			s.open = s.moves(Attention)
			s.propose()
		}
		if layers > 4 && len(tried) < 2 {
			t.Errorf("%d layers: %d sets were tried", layers, len(tried))
		}
	}
}

// TestPartSets holds sets of parts to their sizes, which stay what they are, and expects parts of each kind to be exchanged by themselves.
func TestPartSets(t *testing.T) {
	for _, shares := range [][2]float64{{ratio, ratio}, {0.6, 0.2}, {1, 0.3}, {0.3, 1}, {0, 0.5}} {
		s := SearchOf(method.Size{Layers: 12, AttentionShare: 0.3}, shares[Attention], shares[FeedForward])
		sizes, apart := s.sizes, 0
		if sizes != [2]int{int(math.Round(10 * shares[0])), int(math.Round(10 * shares[1]))} {
			t.Errorf("shares %v: %v parts", shares, sizes)
		}
		for range 40 {
			now := s.Next()
			for _, set := range []Set{now.Best, now.Other} {
				if [2]int{set[0].Len(), set[1].Len()} != sizes || set.Within(1, 11) != set {
					t.Fatalf("shares %v: the set %s", shares, Format(set))
				}
			}
			if now.Other == now.Best {
				t.Fatalf("shares %v: the best set is tried against itself", shares)
			}
			if now.Other != Whole(now.Other[Attention]) {
				apart++
			}
			for range window {
				s.Count(now, false, true)
			}
			s.open = true
			s.propose()
		}
		if apart < 30 {
			t.Errorf("shares %v: %d of 40 sets choose the parts apart", shares, apart)
		}
	}
	if s := SearchOf(method.Size{Layers: 12}, 0.3, 0.9); s.parts || s.sizes != [2]int{3, 3} {
		t.Errorf("a model that runs layers as a whole: %v", s.sizes)
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
		"a larger set": set(4, b[4]|4), "a layer beyond": set(12, 1), "other feed-forward parts": set(20, b[20]&^2|4),
		"no score": append(binary.LittleEndian.AppendUint64(slices.Clone(b[:36]), math.Float64bits(math.NaN())), 1),
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
		if s.best != Whole(s.best[Attention]) || s.best.Within(1, layers-1) != s.best || s.best[Attention].Len() != s.sizes[Attention] || !(s.score >= 0 && s.score <= 1) {
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
	if got := s.Next(); got.Best != Whole(want) || !got.Open {
		t.Errorf("%+v, want %x", got, want)
	}
	if got := NewSearch(12, 1).Next(); got.Best != Whole(forest.LayerRange(1, 11)) || got.Open {
		t.Errorf("all: %+v", got)
	}
}
