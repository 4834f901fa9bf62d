package text

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
)

// slow is the matrix as a list that is searched.
type slow struct {
	all []Trigram
	max int
}

func (s *slow) of(pair uint64) (of []int) {
	for i, t := range s.all {
		if t.pair == pair {
			of = append(of, i)
		}
	}
	return of
}

func (s *slow) add(pair uint64, id token.ID) {
	of := s.of(pair)
	for _, i := range of {
		if s.all[i].ID == id {
			s.all[i].Units = min(TrigramHeaviest, s.all[i].Units+1)
			return
		}
	}
	if len(of) == TrigramWidest {
		least := slices.MinFunc(of, func(a, b int) int { return cmp.Compare(s.all[a].Units, s.all[b].Units) })
		s.all[least].ID, s.all[least].Units = id, 1
		return
	}
	if len(s.all) == s.max {
		var order []int
		for i := range s.all {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.all[a].Units, s.all[b].Units) })
		keep := order[(s.max+1)/2:]
		slices.Sort(keep)
		var kept []Trigram
		for _, i := range keep {
			kept = append(kept, s.all[i])
		}
		s.all = kept
	}
	s.all = append(s.all, Trigram{pair: pair, ID: id, Units: 1})
}

// successor is what both know of a trigram.
type successor struct {
	ID    token.ID
	Units int32
}

// TestMatrix compares the matrix with a list, for matrices that forget seldom and often, and for pairs of few and of many successors.
func TestMatrix(t *testing.T) {
	for _, c := range []struct {
		name        string
		max, tokens int
	}{{"one", 1, 3}, {"small", 40, 9}, {"odd", 333, 40}, {"wide", 5000, 24}, {"many pairs", 3000, 2000}} {
		rng := rand.New(rand.NewPCG(1, uint64(c.max)))
		m, s := NewTrigram(c.max), &slow{max: c.max}
		draw := func() token.ID { return token.ID(min(rng.IntN(c.tokens), rng.IntN(c.tokens))) }
		for round := range 8000 {
			pair, id := TrigramPair(draw()/4, draw()/4), draw()
			m.Add(pair, id)
			s.add(pair, id)
			if round%37 > 0 {
				continue
			}
			if len(m.trigrams) != len(s.all) || len(m.trigrams) > c.max {
				t.Fatalf("%s: %d trigrams, want %d", c.name, len(m.trigrams), len(s.all))
			}
			var got, want []successor
			for x := m.First(pair); x != nil; x = m.After(x) {
				got = append(got, successor{x.ID, x.Units})
			}
			total, heaviest := int32(0), int32(0)
			for _, i := range s.of(pair) {
				want = append(want, successor{s.all[i].ID, s.all[i].Units})
				total, heaviest = total+s.all[i].Units, max(heaviest, s.all[i].Units)
			}
			if d := gocmp.Diff(want, got); d != "" {
				t.Fatalf("%s: round %d: %s", c.name, round, d)
			}
			if best, share := m.Best(pair); best.Units != heaviest || m.Total(pair) != total || share != float32(heaviest)/float32(total) {
				t.Fatalf("%s: the heaviest of %v is %v, a share of %v", c.name, got, *best, share)
			}
		}
		if used := len(m.heads); used > max(1024, 4*c.max) {
			t.Errorf("%s: a table of %d", c.name, used)
		}
	}
}

// TestNothing: a pair that was not seen has no successor.
func TestNothing(t *testing.T) {
	m := NewTrigram(10)
	m.Add(TrigramPair(1, 2), 3)
	if best, _ := m.Best(TrigramPair(2, 1)); best != nil || m.First(TrigramPair(2, 1)) != nil || m.Total(TrigramPair(2, 1)) != 0 {
		t.Errorf("2 1 is followed by %v", best)
	}
}

// TestCap: the weight of a trigram is 3 at most.
func TestCap(t *testing.T) {
	m := NewTrigram(10)
	for range 100 {
		m.Add(TrigramPair(1, 2), 3)
	}
	if got := TrigramUnit * float64(m.First(TrigramPair(1, 2)).Units); got != 3 {
		t.Errorf("a weight of %v", got)
	}
}
