// trigram.go has a bounded matrix of trigrams: the weights of the tokens that followed a pair of tokens.

package text

import "grove/internal/text/token"

// The weights.
const (
	TrigramUnit     = 0.04 // what a step adds to the weight of a trigram
	TrigramHeaviest = 75   // units: a weight of 3
	TrigramWidest   = 16   // successors of a pair
)

// TrigramMatrix is the weights of trigrams: of each pair of tokens, the tokens that followed it. It is for one goroutine at a time.
type TrigramMatrix struct {
	heads    []int32 // of pairs, by hash: the place of the first trigram and one; 0: empty
	pairs    int
	trigrams []Trigram // the older first
	max      int
}

// Trigram is a successor of a pair.
type Trigram struct {
	pair  uint64
	ID    token.ID
	Units int32 // its weight, each [TrigramUnit]
	next  int32 // the place of the pair's next successor and one; 0: it is the last one
}

// NewTrigram makes a matrix of at most max trigrams, each of 24 bytes; the table of pairs takes 16 bytes a trigram at most.
func NewTrigram(max int) *TrigramMatrix { return &TrigramMatrix{heads: make([]int32, 1024), max: max} }

// Reset forgets all trigrams, and keeps their memory.
func (m *TrigramMatrix) Reset() {
	m.trigrams, m.pairs = m.trigrams[:0], 0
	clear(m.heads)
}

// Len returns the number of trigrams.
func (m *TrigramMatrix) Len() int { return len(m.trigrams) }

// TrigramPair returns the key of two tokens behind each other.
func TrigramPair(a, b token.ID) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// slot returns where the head of a pair is, or the empty slot for it.
func (m *TrigramMatrix) slot(pair uint64) uint64 {
	h := pair * 0x9e3779b97f4a7c15
	mask := uint64(len(m.heads) - 1)
	for at := (h ^ h>>32) & mask; ; at = (at + 1) & mask {
		if head := m.heads[at]; head == 0 || m.trigrams[head-1].pair == pair {
			return at
		}
	}
}

// First returns the first successor of a pair, nil where there is none. It is valid until the next Add.
func (m *TrigramMatrix) First(pair uint64) *Trigram { return m.at(m.heads[m.slot(pair)]) }

// After returns the next successor of the same pair.
func (m *TrigramMatrix) After(t *Trigram) *Trigram { return m.at(t.next) }

func (m *TrigramMatrix) at(place int32) *Trigram {
	if place == 0 {
		return nil
	}
	return &m.trigrams[place-1]
}

// Total returns the weight of all successors of a pair, in units.
func (m *TrigramMatrix) Total(pair uint64) (units int32) {
	for t := m.First(pair); t != nil; t = m.After(t) {
		units += t.Units
	}
	return units
}

// Best returns the heaviest successor of a pair, the first of equals, and its share of the weight of all; nil where there is none.
func (m *TrigramMatrix) Best(pair uint64) (best *Trigram, share float32) {
	for t := m.First(pair); t != nil; t = m.After(t) {
		if best == nil || t.Units > best.Units {
			best = t
		}
	}
	if best == nil {
		return nil, 0
	}
	return best, float32(best.Units) / float32(m.Total(pair))
}

// Add adds a unit to the weight of a trigram. A new successor of a pair that has the most takes the place of the lightest one, the
// oldest of equals.
func (m *TrigramMatrix) Add(pair uint64, id token.ID) {
	link, n := &m.heads[m.slot(pair)], 0
	var least *Trigram
	for *link != 0 {
		t := &m.trigrams[*link-1]
		if t.ID == id {
			t.Units = min(t.Units+1, TrigramHeaviest)
			return
		}
		if least == nil || t.Units < least.Units {
			least = t
		}
		link, n = &t.next, n+1
	}
	switch {
	case n == TrigramWidest:
		least.ID, least.Units = id, 1
		return
	case len(m.trigrams) == m.max:
		m.forget()
		m.Add(pair, id)
		return
	}
	*link = int32(len(m.trigrams)) + 1 // before append moves what it points into
	m.trigrams = append(m.trigrams, Trigram{pair: pair, ID: id, Units: 1})
	if n > 0 {
		return
	}
	if m.pairs++; 2*m.pairs > len(m.heads) {
		m.heads = make([]int32, 2*len(m.heads))
		m.link()
	}
}

// forget forgets half of the trigrams: the lightest, of equal ones the oldest.
func (m *TrigramMatrix) forget() {
	var of [TrigramHeaviest + 1]int
	for i := range m.trigrams {
		of[m.trigrams[i].Units]++
	}
	drop, limit := (len(m.trigrams)+1)/2, int32(0)
	for ; drop > of[limit]; limit++ {
		drop -= of[limit]
	}
	kept := m.trigrams[:0]
	for _, t := range m.trigrams {
		switch {
		case t.Units < limit:
		case t.Units == limit && drop > 0:
			drop--
		default:
			kept = append(kept, t)
		}
	}
	m.trigrams = kept
	clear(m.heads)
	m.link()
}

// link fills the empty table of pairs. Successors stay in their order.
func (m *TrigramMatrix) link() {
	m.pairs = 0
	for i := range m.trigrams {
		t := &m.trigrams[i]
		t.next = 0
		link := &m.heads[m.slot(t.pair)]
		if *link == 0 {
			m.pairs++
		}
		for *link != 0 {
			link = &m.trigrams[*link-1].next
		}
		*link = int32(i) + 1
	}
}
