package regex

import "container/heap"

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

// search looks for a string of an expression among its derivatives. All those on the way to one are not empty; where there is
// none, all derivatives are empty.
func (s *Store) search(id ID) (empty bool) {
	f := &frontier{s: s, places: []place{{id, -1}}, open: []int32{0}}
	seen := map[ID]bool{id: true}
	for len(f.open) > 0 && s.spend(1) {
		at := heap.Pop(f).(int32)
		here := f.places[at].id
		for _, b := range s.parts[s.partition(here)].first {
			d := s.derive(here, b)
			flags := s.nodes[d].flags
			if flags&isSure != 0 {
				for ; at >= 0; at = f.places[at].from {
					s.nodes[f.places[at].id].flags |= isSure
				}
				return false
			}
			if flags&isEmpty == 0 && !seen[d] {
				seen[d] = true
				f.places = append(f.places, place{d, at})
				heap.Push(f, int32(len(f.places)-1))
			}
		}
	}
	if s.err != nil {
		return false
	}
	for _, p := range f.places {
		s.nodes[p.id].flags |= isEmpty
	}
	return true
}
