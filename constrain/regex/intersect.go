package regex

import "slices"

// And returns the intersection of expressions; of none, all strings over the bytes 0x00 to 0xFE.
func (s *Store) And(ids ...ID) ID {
	if len(ids) == 0 {
		return s.all
	}
	base := len(s.tmp)
	defer func() { s.tmp = s.tmp[:base] }()
	for _, id := range ids {
		s.spread(kindAnd, id)
	}
	list := s.tmp[base:]
	for _, id := range list {
		if s.isWords(id) && len(list) > 1 {
			return s.filterWords(id, list)
		}
	}
	return s.and(list)
}

// and2 returns the intersection of two expressions.
func (s *Store) and2(x, y ID) ID {
	base := len(s.tmp)
	s.spread(kindAnd, x)
	s.spread(kindAnd, y)
	id := s.and(s.tmp[base:])
	s.tmp = s.tmp[:base]
	return id
}

// and returns the intersection of a list that has no intersections, in its normal form: sorted, each once, sets of bytes and
// JSON strings as one. It changes the list.
func (s *Store) and(list []ID) ID {
	if !s.spend(len(list) / 4) {
		return Nothing
	}
	list = s.meetQuoted(s.meetSets(list))
	slices.Sort(list)
	list = slices.Compact(list)
	clean, text := false, false // some member is without 0xFF, is text, besides all of those
	notText := false
	least, most := uint32(0), uint32(inf)
	epsilon, nullable := false, true
	for _, id := range list {
		n := &s.nodes[id]
		if n.flags&isEmpty != 0 || n.kind == kindNot && has(list, ID(n.a)) {
			return Nothing
		}
		clean = clean || id != s.all && n.flags&noFF != 0
		text = text || id != s.allText && n.flags&isText != 0
		notText = notText || n.kind == kindNot && ID(n.a) == s.allText
		least, most = max(least, n.min), min(most, n.max)
		epsilon = epsilon || id == Epsilon
		nullable = nullable && n.flags&isNullable != 0
	}
	switch {
	case least > most || epsilon && !nullable || notText && text:
		return Nothing
	case epsilon:
		return Epsilon
	}
	list = slices.DeleteFunc(list, func(id ID) bool {
		return id == s.full && len(list) > 1 || id == s.all && clean || id == s.allText && text
	})
	switch {
	case s.err != nil:
		return Nothing
	case len(list) == 0:
		return s.full
	case len(list) == 1:
		return list[0]
	}
	return s.addList(kindAnd, list)
}

// meetSets replaces the sets of bytes of an intersection by one.
func (s *Store) meetSets(list []ID) []ID {
	set, n := Set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, 0
	for _, id := range list {
		if x := &s.nodes[id]; x.kind == kindSet {
			set = set.And(s.sets[x.a])
			n++
		}
	}
	if n < 2 {
		return list
	}
	list = slices.DeleteFunc(list, func(id ID) bool { return s.nodes[id].kind == kindSet })
	return append(list, s.Bytes(set))
}
