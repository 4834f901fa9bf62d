package constrain

import (
	"cmp"
	"slices"
)

// A suffixes is the smallest automaton of the suffixes of a text of symbols, in rows: state 0 stands before the first
// symbol, and every path is a part of the text. It has at most two states and three branches for each symbol.
// (Blumer et al., The smallest automaton recognizing the subwords of a text, 1985.)
type suffixes struct {
	rows []uint32 // by state: where its branches begin
	by   []int32  // the symbol of a branch, ascending in each row
	to   []uint32 // the state behind it
}

// row returns the branches of a state.
func (s *suffixes) row(state uint32) (from, to uint32) { return s.rows[state], s.rows[state+1] }

// A builder makes suffixes, one symbol after the other.
type builder struct {
	states   []suffixState
	branches []branch
	wide     map[wideKey]int32 // branches of states that have many
}

type suffixState struct {
	length, link int32 // of the longest text that leads here; the state of the longest suffix that leads elsewhere
	first, count int32 // its branches, as a list
}

type branch struct{ by, to, next int32 }

type wideKey struct{ state, by int32 }

// widest is how many branches a state has before they are found by a map.
const widest = 16

// none ends lists of branches and links.
const none = -1

// newSuffixes returns the automaton of a text.
func newSuffixes(text []int32) *suffixes {
	b := &builder{wide: map[wideKey]int32{}}
	last := b.newState(0)
	b.states[last].link = none
	for _, by := range text {
		last = b.extend(last, by)
	}
	return b.pack()
}

func (b *builder) newState(length int32) int32 {
	b.states = append(b.states, suffixState{length: length, first: none})
	return int32(len(b.states) - 1)
}

// find returns the branch of a state by a symbol, or none.
func (b *builder) find(state, by int32) int32 {
	s := &b.states[state]
	if s.count > widest {
		if i, ok := b.wide[wideKey{state, by}]; ok {
			return i
		}
		return none
	}
	i := s.first
	for i != none && b.branches[i].by != by {
		i = b.branches[i].next
	}
	return i
}

func (b *builder) add(state, by, to int32) {
	s := &b.states[state]
	i := int32(len(b.branches))
	b.branches = append(b.branches, branch{by, to, s.first})
	s.first = i
	switch s.count++; {
	case s.count == widest+1:
		for ; i != none; i = b.branches[i].next {
			b.wide[wideKey{state, b.branches[i].by}] = i
		}
	case s.count > widest:
		b.wide[wideKey{state, by}] = i
	}
}

// extend adds a symbol behind the text, whose state is last, and returns the state of the longer text.
func (b *builder) extend(last, by int32) int32 {
	now := b.newState(b.states[last].length + 1)
	p := last
	for ; p != none && b.find(p, by) == none; p = b.states[p].link {
		b.add(p, by, now)
	}
	if p == none {
		return now // its link is 0
	}
	q := b.branches[b.find(p, by)].to
	if b.states[q].length == b.states[p].length+1 {
		b.states[now].link = q
		return now
	}
	clone := b.newState(b.states[p].length + 1)
	b.states[clone].link = b.states[q].link
	for i := b.states[q].first; i != none; i = b.branches[i].next {
		b.add(clone, b.branches[i].by, b.branches[i].to)
	}
	for ; p != none; p = b.states[p].link {
		i := b.find(p, by)
		if i == none || b.branches[i].to != q {
			break
		}
		b.branches[i].to = clone
	}
	b.states[q].link, b.states[now].link = clone, clone
	return now
}

// pack returns the rows.
func (b *builder) pack() *suffixes {
	s := &suffixes{rows: make([]uint32, 0, len(b.states)+1)}
	s.by, s.to = make([]int32, 0, len(b.branches)), make([]uint32, 0, len(b.branches))
	var row []branch
	for i := range b.states {
		s.rows = append(s.rows, uint32(len(s.by)))
		row = row[:0]
		for at := b.states[i].first; at != none; at = b.branches[at].next {
			row = append(row, b.branches[at])
		}
		slices.SortFunc(row, func(x, y branch) int { return cmp.Compare(x.by, y.by) })
		for _, e := range row {
			s.by, s.to = append(s.by, e.by), append(s.to, uint32(e.to))
		}
	}
	s.rows = append(s.rows, uint32(len(s.by)))
	return s
}
