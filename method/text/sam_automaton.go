package text

import "grove/internal/text/token"

// automaton is the suffix automaton of a text that grows: a state for every set of substrings that end at the same
// places, built in constant amortised time a token (Blumer et al. 1985). It does not hold the text.
type automaton struct {
	link, length []int32
	end          []int32 // the last token of the first occurrence of the state's substrings
	first        []int32 // of the state's edges
	edges        []edge
	table        []int32 // edges by state and token; 0 is empty
	last         int32
}

type edge struct {
	state, to, next int32 // next: another edge of the state; -1
	id              token.ID
}

const (
	samRoot = 0
	samNone = -1
)

func newAutomaton() *automaton {
	a := &automaton{table: make([]int32, 1024)}
	a.reset()
	return a
}

func (a *automaton) reset() {
	a.link, a.length, a.end, a.first = a.link[:0], a.length[:0], a.end[:0], a.first[:0]
	a.edges = a.edges[:0]
	clear(a.table)
	a.state(0, samNone, samNone)
	a.last = samRoot
}

// state adds a state.
func (a *automaton) state(length, link, end int32) int32 {
	a.length, a.link, a.end = append(a.length, length), append(a.link, link), append(a.end, end)
	a.first = append(a.first, samNone)
	return int32(len(a.length) - 1)
}

// slot returns the place in the table of an edge, or the empty one for it.
func (a *automaton) slot(state int32, id token.ID) uint64 {
	h := (uint64(uint32(state))<<32 | uint64(uint32(id))) * 0x9e3779b97f4a7c15
	mask := uint64(len(a.table) - 1)
	for at := (h >> 24) & mask; ; at = (at + 1) & mask {
		if e := a.table[at]; e == 0 || a.edges[e-1].state == state && a.edges[e-1].id == id {
			return at
		}
	}
}

// find returns the edge of a state by a token, nil where there is none.
func (a *automaton) find(state int32, id token.ID) *edge {
	if e := a.table[a.slot(state, id)]; e != 0 {
		return &a.edges[e-1]
	}
	return nil
}

func (a *automaton) connect(state int32, id token.ID, to int32) {
	if 2*len(a.edges) >= len(a.table) {
		a.table = make([]int32, 2*len(a.table))
		for i, e := range a.edges {
			a.table[a.slot(e.state, e.id)] = int32(i) + 1
		}
	}
	a.edges = append(a.edges, edge{state: state, id: id, to: to, next: a.first[state]})
	a.first[state] = int32(len(a.edges) - 1)
	a.table[a.slot(state, id)] = int32(len(a.edges))
}

// extend adds the next token of the text, at place at.
func (a *automaton) extend(id token.ID, at int32) {
	state := a.state(at+1, samRoot, at)
	p := a.last
	a.last = state
	for ; p != samNone; p = a.link[p] {
		e := a.find(p, id)
		if e == nil {
			a.connect(p, id, state)
			continue
		}
		to := e.to
		if a.length[p]+1 != a.length[to] {
			to = a.split(p, id, to)
		}
		a.link[state] = to
		return
	}
}

// split gives the substrings of state to that are no longer than those of p and the token a state of their own.
func (a *automaton) split(p int32, id token.ID, to int32) int32 {
	clone := a.state(a.length[p]+1, a.link[to], a.end[to])
	for e := a.first[to]; e != samNone; e = a.edges[e].next {
		a.connect(clone, a.edges[e].id, a.edges[e].to)
	}
	a.link[to] = clone
	for ; p != samNone; p = a.link[p] {
		e := a.find(p, id)
		if e == nil || e.to != to {
			break
		}
		e.to = clone
	}
	return clone
}

// repeated returns the length of the longest suffix of the text that occurs in it earlier, too, and the place of the
// last token of its first occurrence. That suffix is the longest of the state that the text's own state links to:
// longer ones end at the text's end alone.
func (a *automaton) repeated() (length, end int) {
	if a.last == samRoot {
		return 0, samNone
	}
	state := a.link[a.last]
	return int(a.length[state]), int(a.end[state])
}
