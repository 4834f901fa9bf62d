package regex

import "slices"

// Local returns an expression that the first n bytes of a text cannot tell from another one: texts of at most n bytes begin
// strings of both or of none, and are strings of both or of none. Expressions that differ by large counts only mostly have the
// same one, so that what depends on n bytes can be kept for all of them. n is from 1 to 65,535.
func (s *Store) Local(id ID, n int) ID {
	if n < 1 || n > 0xFFFF || s.err != nil {
		return id
	}
	local := s.local(id, uint32(n), 0)
	if s.err != nil {
		return id
	}
	return local
}

// maxLocal bounds how deep Local looks.
const maxLocal = 64

// local is Local. What has no intersections and complements is made of parts that are not empty and go on independently of each
// other: a count of more than n is as good as none, for each repetition takes a byte.
func (s *Store) local(id ID, n, depth uint32) ID {
	node := s.nodes[id]
	switch node.kind {
	case kindConcat, kindRepeat, kindOr, kindAnd, kindQuoted:
	default:
		return id
	}
	if depth > maxLocal || s.err != nil {
		return id
	}
	key := uint64(id)<<32 | uint64(n)
	if known, ok := s.locals[key]; ok {
		return known
	}
	if !s.spend(1) || !s.grow(1) {
		return id
	}
	out := id
	switch node.kind {
	case kindConcat:
		x, y := s.local(ID(node.a), n, depth+1), s.local(ID(node.b), n, depth+1)
		if x != ID(node.a) || y != ID(node.b) {
			out = s.concat(x, y)
		}
	case kindRepeat:
		least, most := min(node.b, n+1), node.c
		if most > n {
			most = inf
		}
		if x := s.local(ID(node.a), n, depth+1); x != ID(node.a) || least != node.b || most != node.c {
			out = s.repeat(x, least, most)
		}
	case kindOr:
		out = s.mapKids(&node, id, func(k ID) ID { return s.local(k, n, depth+1) })
	case kindAnd:
		out = s.localAnd(id, n)
	case kindQuoted:
		// The text is no longer than its spelling, but for an escape that is not complete.
		if x := s.local(ID(node.a), n+4, depth+1); x != ID(node.a) {
			out = s.quoted(x, node.b, node.c)
		}
	}
	if s.locals == nil {
		s.locals = map[uint64]ID{}
	}
	s.locals[key] = out
	return out
}

// mapKids returns a union or an intersection with each child replaced.
func (s *Store) mapKids(n *node, id ID, f func(ID) ID) ID {
	base := len(s.tmp)
	same := true
	for i := n.a; i < n.a+n.b; i++ {
		k := f(s.kids[i])
		same = same && k == s.kids[i]
		s.spread(n.kind, k)
	}
	out := id
	switch {
	case same:
	case n.kind == kindOr:
		out = s.or(s.tmp[base:])
	default:
		out = s.and(s.tmp[base:])
	}
	s.tmp = s.tmp[:base]
	return out
}

// localAnd is local of an intersection. Members restrict each other: a text that goes on without a count may not do so with it. It
// does where the way from any derivative to the end of a string is so short that no count is reached.
func (s *Store) localAnd(id ID, n uint32) ID {
	least := uint32(inf)
	wide := s.widen(id, 2*n, &least, 0)
	if wide == id || s.err != nil {
		return id
	}
	if far, ok := s.farthest(wide); ok && n+far+4 <= least { // 4: a byte that completes an escape stands for as many
		return wide
	}
	return id
}

// widen returns an expression without the bounds of repetitions that are at least from, but for those within complements, and sets
// least to the smallest of them.
func (s *Store) widen(id ID, from uint32, least *uint32, depth int) ID {
	n := s.nodes[id]
	if depth > maxLocal || s.err != nil {
		return id
	}
	next := func(k ID) ID { return s.widen(k, from, least, depth+1) }
	switch n.kind {
	case kindConcat:
		if x, y := next(ID(n.a)), next(ID(n.b)); x != ID(n.a) || y != ID(n.b) {
			return s.concat(x, y)
		}
	case kindRepeat:
		x, most := next(ID(n.a)), n.c
		if most >= from && most != inf {
			*least, most = min(*least, most), inf
		}
		if x != ID(n.a) || most != n.c {
			return s.repeat(x, n.b, most)
		}
	case kindOr, kindAnd:
		return s.mapKids(&n, id, next)
	case kindQuoted:
		if x := next(ID(n.a)); x != ID(n.a) {
			return s.quoted(x, n.b, n.c)
		}
	}
	return id
}

// maxFarthest bounds the derivatives that farthest looks at.
const maxFarthest = 128

// farthest returns a number of bytes such that from each derivative of an expression a string ends after at most so many; false
// where there are too many derivatives to tell.
func (s *Store) farthest(id ID) (far uint32, ok bool) {
	if known, ok := s.far[id]; ok {
		return known, known != inf
	}
	places, at := []ID{id}, map[ID]int{id: 0}
	var edges [][2]int // to, from
	for i := 0; i < len(places) && len(places) <= maxFarthest; i++ {
		for _, b := range s.parts[s.partition(places[i])].first {
			d := s.Derive(places[i], b)
			if d == Nothing {
				continue
			}
			j, seen := at[d]
			if !seen {
				j = len(places)
				at[d] = j
				places = append(places, d)
			}
			edges = append(edges, [2]int{j, i})
		}
	}
	far = inf
	if len(places) <= maxFarthest && s.err == nil {
		far = s.distance(places, edges)
	}
	if s.far == nil {
		s.far = map[ID]uint32{}
	}
	for _, id := range places { // a bound for an expression is one for its derivatives
		if _, known := s.far[id]; !known || far != inf {
			s.far[id] = far
		}
	}
	return far, far != inf
}

// distance returns the largest number of edges on the shortest ways from places to those that hold the empty string; edges lead
// backwards.
func (s *Store) distance(places []ID, edges [][2]int) (far uint32) {
	slices.SortFunc(edges, func(x, y [2]int) int { return x[0] - y[0] })
	seen := make([]bool, len(places))
	var front []int
	for i, id := range places {
		if s.Nullable(id) {
			seen[i] = true
			front = append(front, i)
		}
	}
	for left := len(places) - len(front); left > 0; far++ {
		var next []int
		for _, to := range front {
			i, _ := slices.BinarySearchFunc(edges, to, func(e [2]int, to int) int { return e[0] - to })
			for ; i < len(edges) && edges[i][0] == to; i++ {
				if from := edges[i][1]; !seen[from] {
					seen[from] = true
					next = append(next, from)
					left--
				}
			}
		}
		if front = next; len(front) == 0 {
			return inf // a derivative without strings, which there is not
		}
	}
	return far
}
