package text

import (
	"math"
	"math/rand/v2"

	"grove/internal/text/token"
)

const (
	iterations  = 150
	adedLongest = 4 // nodes of a path, with the root
	adedNone    = -1
)

// adedSearch is a Monte Carlo tree search over what may follow a pair of tokens. Its random numbers are the same in each search, so that
// the matrix and the pair decide the result.
type adedSearch struct {
	matrix *TrigramMatrix
	before token.ID   // the root's token
	nodes  []adedNode // parents first; the root is the text's last token
	seed   rand.PCG
	random *rand.Rand
}

// adedNode is a token behind its parent's.
type adedNode struct {
	id       token.ID
	parent   int32
	first, n int32 // children
	depth    int32 // 1: the root
	units    int32 // the weight of its trigram
	share    float32
	visits   int32
	score    float32
	place    int // of its draft
}

func newSearch(m *TrigramMatrix) *adedSearch {
	s := &adedSearch{matrix: m, nodes: make([]adedNode, 0, 1+iterations*TrigramWidest)}
	s.random = rand.New(&s.seed)
	return s
}

// run searches what follows two tokens.
func (s *adedSearch) run(before, last token.ID) {
	s.seed.Seed(1, 2)
	s.before = before
	s.nodes = append(s.nodes[:0], adedNode{id: last, parent: adedNone, depth: 1})
	for range iterations {
		s.iterate()
		if len(s.nodes) == 1 {
			return // nothing is known to follow
		}
	}
}

// iterate goes down to a leaf, expands it, rolls out, and scores the nodes of the path: 1 and the weights of its trigrams.
func (s *adedSearch) iterate() {
	at := int32(0)
	for s.nodes[at].n > 0 {
		at = s.choose(at)
	}
	at = s.expand(at)
	units := s.rollOut(at)
	for n := at; n != adedNone; n = s.nodes[n].parent {
		units += s.nodes[n].units
	}
	for n := at; n != adedNone; n = s.nodes[n].parent {
		s.nodes[n].score += 1 + TrigramUnit*float32(units)
		s.nodes[n].visits++
	}
}

// choose returns the child that promises most; one that was never visited comes first.
func (s *adedSearch) choose(at int32) int32 {
	parent := &s.nodes[at]
	best, most := parent.first, float32(adedNone)
	for i := parent.first; i < parent.first+parent.n; i++ {
		c := &s.nodes[i]
		if c.visits == 0 {
			return i
		}
		if p := promise(c.score, c.visits, parent.visits, TrigramUnit*float32(c.units)); p > most {
			best, most = i, p
		}
	}
	return best
}

// promise is the mean score of a child, and what its weight adds while it was visited seldom.
func promise(score float32, visits, parent int32, weight float32) float32 {
	return score/float32(visits) + explore[parent]*weight/float32(1+visits)
}

// explore is the factor of weights by the visits of the parent.
var explore = func() (f [iterations + 1]float32) {
	for n := range f {
		f[n] = float32((32 + math.Log(float64(n+9)/8)) * math.Sqrt(float64(n)))
	}
	return f
}()

// pair returns the two tokens at the end of a node's path.
func (s *adedSearch) pair(at int32) (a, b token.ID) {
	n := &s.nodes[at]
	if n.parent == adedNone {
		return s.before, n.id
	}
	return s.nodes[n.parent].id, n.id
}

// expand adds all successors of a leaf and returns the last one, or the leaf where none is added.
func (s *adedSearch) expand(at int32) int32 {
	depth := s.nodes[at].depth
	if depth == adedLongest {
		return at
	}
	pair := TrigramPair(s.pair(at))
	all := float32(s.matrix.Total(pair))
	first := int32(len(s.nodes))
	for t := s.matrix.First(pair); t != nil; t = s.matrix.After(t) {
		s.nodes = append(s.nodes, adedNode{id: t.ID, parent: at, depth: depth + 1, units: t.Units, share: float32(t.Units) / all})
	}
	n := int32(len(s.nodes)) - first
	if n == 0 {
		return at
	}
	s.nodes[at].first, s.nodes[at].n = first, n
	return first + n - 1
}

// rollOut draws successors by their weights up to the longest path, and returns the sum of the weights.
func (s *adedSearch) rollOut(at int32) (units int32) {
	a, b := s.pair(at)
	for range adedLongest - s.nodes[at].depth {
		pair := TrigramPair(a, b)
		all := s.matrix.Total(pair)
		if all == 0 {
			return units
		}
		t := s.matrix.First(pair)
		for left := s.random.Int32N(all) - t.Units; left >= 0; left -= t.Units {
			t = s.matrix.After(t)
		}
		units += t.Units
		a, b = b, t.ID
	}
	return units
}
