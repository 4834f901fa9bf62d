package layers

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

func TestExits(t *testing.T) {
	for _, c := range []struct {
		layers, most int
		want         []int
	}{
		{2, 0, []int{1}}, {4, 0, []int{1, 2, 3}}, {12, 0, []int{2, 4, 6, 8, 10, 11}}, {32, 0, []int{4, 8, 12, 16, 20, 24, 28, 31}},
		{32, 10, []int{4, 8, 10}}, {32, 8, []int{4, 8}}, {32, 1, []int{1}}, {128, 0, []int{16, 32, 48, 64, 80, 96, 112, 127}},
	} {
		s := NewShares(c.layers, c.most)
		if !slices.Equal(s.Exits, c.want) {
			t.Errorf("%d layers, %d at most: %v, want %v", c.layers, c.most, s.Exits, c.want)
		}
		for i, l := range s.Exits {
			if set := s.Before(i); set.Len() != i || i > 0 && !set.Has(s.Exits[i-1]-1) || set.Has(l-1) {
				t.Errorf("%d layers: before exit %d: %x", c.layers, i, set)
			}
		}
	}
}

// TestChoice has the example of DEL: of exits whose drafts are accepted at these shares the second gives the most tokens a layer.
func TestChoice(t *testing.T) {
	const layers, most = 32, 18
	shares := func(of map[int]float64) *Shares {
		s := NewShares(layers, 0)
		for i, l := range s.Exits {
			s.Learn(i, int(100*of[l]), 100)
		}
		return s
	}
	for name, c := range map[string]struct {
		of   map[int]float64
		want Choice
	}{
		"the paper's": {map[int]float64{4: 0.6, 8: 0.8, 16: 0.92}, Choice{Exit: 1, Depth: 3, Pays: true, Farthest: 2}},
		"no draft":    {nil, Choice{Exit: 0, Depth: 1, Farthest: 6}},
		"deep ones":   {map[int]float64{31: 1}, Choice{Exit: 7, Depth: 18, Pays: true, Farthest: 6}},
		"the first":   {map[int]float64{4: 1}, Choice{Exit: 0, Depth: 18, Pays: true}},
	} {
		if got := shares(c.of).Choose(Units(layers), most); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := NewShares(layers, 0).Choose(Units(layers), most); got.Pays {
		t.Errorf("nothing is known: %+v", got)
	}
	s := NewShares(layers, 0) // three rounds, whose weights fall by 0.95 each
	s.Learn(2, 3, 4)
	s.Learn(2, 0, 1)
	s.Learn(2, 2, 2)
	want := share{3*0.95*0.95 + 2, 4*0.95*0.95 + 0.95 + 2}
	if got := s.seen[2]; math.Abs(got.Accepted-want.Accepted) > 1e-9 || math.Abs(got.Tried-want.Tried) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestSharesSaved refuses records that make no sense, and keeps what it knows then.
func TestSharesSaved(t *testing.T) {
	s := NewShares(12, 0)
	for range 1000 {
		s.Learn(1, 20, 26)
	}
	b, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	other := NewShares(12, 0)
	if err := other.UnmarshalBinary(b); err != nil || !slices.Equal(other.seen, s.seen) {
		t.Errorf("%v: %v, want %v", err, other.seen, s.seen)
	}
	set := func(at int, v uint64) []byte {
		c := slices.Clone(b)
		binary.LittleEndian.PutUint64(c[at:], v)
		return c
	}
	const first = 4 + 4*MostExits // of the first exit's share
	for name, bad := range map[string][]byte{
		"nothing": nil, "a part": b[:len(b)-1], "more": append(slices.Clone(b), 0), "other layers": set(0, 13), "another exit": set(4, 3),
		"more accepted than tried": set(first, math.Float64bits(1)), "no number": set(first+8, math.Float64bits(math.NaN())),
		"less than none": set(first, math.Float64bits(-1)), "too much": set(first+8, math.Float64bits(1e9)),
	} {
		fresh := NewShares(12, 0)
		if err := fresh.UnmarshalBinary(bad); err == nil || !slices.Equal(fresh.seen, make([]share, len(fresh.Exits))) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzShares reads hostile records: what is taken over are shares.
func FuzzShares(f *testing.F) {
	good, err := NewShares(12, 0).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[1:])
	f.Add(append(bytes.Clone(good), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewShares(12, 0)
		if s.UnmarshalBinary(b) != nil {
			return
		}
		for _, seen := range s.seen {
			if of := seen.of(); !(of >= 0 && of <= 1) {
				t.Errorf("%+v is the share %v", seen, of)
			}
		}
	})
}
