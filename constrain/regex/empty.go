package regex

import (
	"cmp"
	"container/heap"
	"slices"
)

// IsEmpty reports whether an expression holds no string.
func (s *Store) IsEmpty(id ID) bool { return s.empty(id) }

// empty is IsEmpty; the answer is kept.
func (s *Store) empty(id ID) bool { return s.emptyWithin(id, 200) }

// emptyWithin looks at the parts of an expression first, to a depth, then searches.
func (s *Store) emptyWithin(id ID, depth int) (is bool) {
	n := &s.nodes[id]
	switch {
	case n.flags&isSure != 0 || s.err != nil:
		return false
	case n.flags&isEmpty != 0:
		return true
	case depth == 0 || n.kind == kindAnd || n.kind == kindNot:
		return s.search(id)
	case n.kind == kindConcat:
		tail := ID(n.b)
		is = s.emptyWithin(ID(n.a), depth-1) || s.emptyWithin(tail, depth-1)
	case n.kind == kindRepeat:
		is = s.emptyWithin(ID(n.a), depth-1)
	case n.kind == kindOr:
		is = true
		for i, end := n.a, n.a+n.b; i < end && is; i++ {
			is = s.emptyWithin(s.kids[i], depth-1)
		}
	}
	if s.err != nil {
		return false
	}
	if is {
		s.nodes[id].flags |= isEmpty
	} else {
		s.nodes[id].flags |= isSure
	}
	return is
}

// place is a derivative that a search has reached.
type place struct {
	id   ID
	from int32 // the place that it is the derivative of; -1: none
}

// frontier is a heap of places that a search has yet to leave: those that promise the shortest strings first, then the oldest.
type frontier struct {
	s      *Store
	places []place
	open   []int32 // indices of places
	at     map[ID]int32
	also   []place // further ways to places that were reached before
}

// from returns the frontier of a search that begins at an expression.
func (s *Store) from(id ID) *frontier {
	return &frontier{s: s, places: []place{{id, -1}}, open: []int32{0}, at: map[ID]int32{id: 0}}
}

// reach adds a place, and reports whether it is new.
func (f *frontier) reach(id ID, from int32) bool {
	if _, ok := f.at[id]; ok {
		f.also = append(f.also, place{id, from})
		return false
	}
	n := int32(len(f.places))
	f.at[id] = n
	f.places = append(f.places, place{id, from})
	heap.Push(f, n)
	return true
}

func (f *frontier) Len() int { return len(f.open) }
func (f *frontier) Less(i, j int) bool {
	x, y := f.open[i], f.open[j]
	mx, my := f.s.nodes[f.places[x].id].min, f.s.nodes[f.places[y].id].min
	return mx < my || mx == my && x < y
}
func (f *frontier) Swap(i, j int) { f.open[i], f.open[j] = f.open[j], f.open[i] }
func (f *frontier) Push(x any)    { f.open = append(f.open, x.(int32)) }
func (f *frontier) Pop() any {
	last := f.open[len(f.open)-1]
	f.open = f.open[:len(f.open)-1]
	return last
}

// How many places a search leaves before it looks at pairs of the members of an intersection, and then for each pair.
const (
	searchFirst = 64
	searchPair  = 1000
)

// search looks for a string of an expression among its derivatives. All those on a way to one are not empty; where there is
// none, all derivatives are empty. Where that takes long, two members of an intersection may have nothing in common, which
// is often seen sooner than that all have nothing.
func (s *Store) search(id ID) (empty bool) {
	f := s.from(id)
	if empty, known := s.explore(f, searchFirst); known {
		return empty
	}
	if s.emptyPair(id) {
		s.nodes[id].flags |= isEmpty
		return true
	}
	empty, _ = s.explore(f, s.limits.Fuel)
	return empty
}

// emptyPair reports whether two members of an intersection are seen to have nothing in common.
func (s *Store) emptyPair(id ID) bool {
	n := s.nodes[id]
	if n.kind != kindAnd || n.b < 3 || n.b > 16 {
		return false
	}
	for i := n.a; i < n.a+n.b; i++ {
		for j := n.a; j < i; j++ {
			pair := s.and2(s.kids[i], s.kids[j])
			if s.tried[pair] {
				continue
			}
			flags := s.nodes[pair].flags
			if flags&isEmpty != 0 {
				return true
			}
			if flags&isSure == 0 {
				if empty, known := s.explore(s.from(pair), searchPair); known && empty {
					return true
				}
			}
			if s.tried == nil {
				s.tried = map[ID]bool{}
			}
			s.tried[pair] = true
		}
	}
	return false
}

// explore leaves at most limit places of a search. known is false where that has not found out whether the first is empty.
func (s *Store) explore(f *frontier, limit int) (empty, known bool) {
	for ; len(f.open) > 0; limit-- {
		if limit == 0 || !s.spend(1) {
			return false, false
		}
		at := heap.Pop(f).(int32)
		here := f.places[at].id
		for _, b := range s.parts[s.partition(here)].first {
			d := s.derive(here, b)
			flags := s.nodes[d].flags
			if flags&isSure != 0 {
				f.succeed(at)
				return false, true
			}
			if flags&isEmpty == 0 {
				f.reach(d, at)
			}
		}
	}
	for _, p := range f.places {
		s.nodes[p.id].flags |= isEmpty
	}
	return true, true
}

// succeed marks the places from which a place that is not empty was reached.
func (f *frontier) succeed(at int32) {
	slices.SortFunc(f.also, func(x, y place) int { return cmp.Compare(x.id, y.id) })
	mark := func(at int32) {
		for ; at >= 0 && f.s.nodes[f.places[at].id].flags&isSure == 0; at = f.places[at].from {
			f.s.nodes[f.places[at].id].flags |= isSure
			f.open = append(f.open, at)
		}
	}
	f.open = f.open[:0]
	for mark(at); len(f.open) > 0; {
		id := f.places[f.open[len(f.open)-1]].id
		f.open = f.open[:len(f.open)-1]
		i, _ := slices.BinarySearchFunc(f.also, id, func(p place, id ID) int { return cmp.Compare(p.id, id) })
		for ; i < len(f.also) && f.also[i].id == id; i++ {
			mark(f.also[i].from)
		}
	}
}
