package regex

import "slices"

// Or returns the union of expressions; of none, [Nothing]. Literals become a dictionary, so that a union of many costs their
// bytes once and a derivative a search in the sorted list.
func (s *Store) Or(ids ...ID) ID {
	base := len(s.tmp)
	defer func() { s.tmp = s.tmp[:base] }()
	for _, id := range ids {
		s.spread(kindOr, id)
	}
	list := s.tmp[base:]
	if words := s.joinWords(list); words != Nothing {
		list = slices.DeleteFunc(list, s.isWords)
		list = append(list, words)
	}
	if joined, ok := s.joinQuoted(list, s.Or); ok {
		list = joined
	}
	return s.or(list)
}

// spread appends an expression to the scratch stack, or its children if it is of that kind.
func (s *Store) spread(k kind, id ID) {
	n := &s.nodes[id]
	if n.kind != k {
		s.tmp = append(s.tmp, id)
		return
	}
	s.spend(int(n.b) / 4)
	s.tmp = append(s.tmp, s.kids[n.a:n.a+n.b]...)
}

// or2 returns the union of two expressions.
func (s *Store) or2(x, y ID) ID {
	switch {
	case x == y || y == Nothing:
		return x
	case x == Nothing:
		return y
	}
	base := len(s.tmp)
	s.spread(kindOr, x)
	s.spread(kindOr, y)
	id := s.or(s.tmp[base:])
	s.tmp = s.tmp[:base]
	return id
}

// orAll is or of expressions that may be unions.
func (s *Store) orAll(ids ...ID) ID {
	base := len(s.tmp)
	for _, id := range ids {
		s.spread(kindOr, id)
	}
	id := s.or(s.tmp[base:])
	s.tmp = s.tmp[:base]
	return id
}

// or returns the union of a list that has no unions, in its normal form: sorted, each once, sets of bytes as one, and what
// follows the same head, or the same tail after a set of bytes, as one. It changes the list.
func (s *Store) or(list []ID) ID {
	if !s.spend(len(list) / 4) {
		return Nothing
	}
	list = s.factor(s.absorbTails(slices.DeleteFunc(list, func(id ID) bool { return s.has(id, isEmpty) })))
	list = s.joinSets(list)
	list, _ = s.joinQuoted(list, s.orAll)
	list = s.joinRepeats(list)
	slices.Sort(list)
	list = s.absorb(slices.Compact(list))
	switch {
	case s.err != nil || len(list) == 0:
		return Nothing
	case len(list) == 1:
		return list[0]
	}
	return s.addList(kindOr, list)
}

// These bound what absorbTails looks at: the expressions of a list, and the tails of each.
const (
	mostUnited = 8
	mostTails  = 32
)

// absorbTails removes what is a tail of another expression of the list whose heads before it may be empty: x?y holds y. Derivatives of many optional parts in a row are
// unions of such tails, each of which would be factored with all the others.
func (s *Store) absorbTails(list []ID) []ID {
	if len(list) > mostUnited {
		return list
	}
	for i := 0; i < len(list); i++ {
		n := &s.nodes[list[i]]
		for steps := 0; n.kind == kindConcat && s.nodes[n.a].flags&isNullable != 0 && len(list) > 1 && steps < mostTails; steps++ {
			tail := ID(n.b)
			if at := slices.Index(list, tail); at >= 0 && at != i {
				list = slices.Delete(list, at, at+1)
				if at < i {
					i--
				}
			}
			n = &s.nodes[tail]
		}
	}
	return list
}

// factor replaces concatenations with the same head by one, and those of a set of bytes and the same tail.
func (s *Store) factor(list []ID) []ID {
	chains := 0 // put first
	for i, id := range list {
		if s.nodes[id].kind == kindConcat {
			list[i], list[chains] = list[chains], id
			chains++
		}
	}
	if chains < 2 || s.depthOr > 100 {
		return list
	}
	s.depthOr++
	defer func() { s.depthOr-- }()
	slices.SortFunc(list[:chains], func(x, y ID) int { return compare2(&s.nodes[x], &s.nodes[y]) })
	if n := len(slices.Compact(list[:chains:chains])); n < chains {
		list, chains = append(list[:n], list[chains:]...), n
	}
	out := 0
	for i := 0; i < chains; {
		head, end := s.nodes[list[i]].a, i+1
		for end < chains && s.nodes[list[end]].a == head {
			end++
		}
		id := list[i]
		if end > i+1 {
			id = s.concat(ID(head), s.tails(list[i:end]))
		}
		list[out] = id
		out++
		i = end
	}
	list = append(list[:out], list[chains:]...)
	return s.factorSets(list, out)
}

// compare2 orders concatenations by head, then tail.
func compare2(x, y *node) int {
	if x.a != y.a {
		return int(int64(x.a) - int64(y.a))
	}
	return int(int64(x.b) - int64(y.b))
}

// tails returns the union of the tails of concatenations.
func (s *Store) tails(list []ID) ID {
	base := len(s.tmp)
	for _, id := range list {
		s.spread(kindOr, ID(s.nodes[id].b))
	}
	id := s.or(s.tmp[base:])
	s.tmp = s.tmp[:base]
	return id
}

// factorSets replaces concatenations of a set of bytes and the same tail by one, in the first n of a list.
func (s *Store) factorSets(list []ID, n int) []ID {
	chains := 0
	for i, id := range list[:n] {
		if x := &s.nodes[id]; x.kind == kindConcat && s.nodes[x.a].kind == kindSet {
			list[i], list[chains] = list[chains], id
			chains++
		}
	}
	if chains < 2 {
		return list
	}
	slices.SortFunc(list[:chains], func(x, y ID) int { return int(int64(s.nodes[x].b) - int64(s.nodes[y].b)) })
	out := 0
	for i := 0; i < chains; {
		tail, end := s.nodes[list[i]].b, i+1
		set := s.sets[s.nodes[s.nodes[list[i]].a].a]
		for ; end < chains && s.nodes[list[end]].b == tail; end++ {
			set = set.Or(s.sets[s.nodes[s.nodes[list[end]].a].a])
		}
		id := list[i]
		if end > i+1 {
			id = s.concat(s.Bytes(set), ID(tail))
		}
		list[out] = id
		out++
		i = end
	}
	return append(list[:out], list[chains:]...)
}

// joinSets replaces the sets of bytes of a union by one.
func (s *Store) joinSets(list []ID) []ID {
	var set Set
	n, last := 0, Nothing
	for _, id := range list {
		if x := &s.nodes[id]; x.kind == kindSet {
			set, last = set.Or(s.sets[x.a]), id
			n++
		}
	}
	if n < 2 {
		return list
	}
	list = slices.DeleteFunc(list, func(id ID) bool { return s.nodes[id].kind == kindSet })
	if s.sets[s.nodes[last].a] == set {
		return append(list, last)
	}
	return append(list, s.Bytes(set))
}

// joinRepeats replaces repetitions of the same body in a union, the body itself and the empty string by one repetition, where
// their counts touch.
func (s *Store) joinRepeats(list []ID) []ID {
	for i := 0; i < len(list) && len(list) <= 64; i++ {
		if s.nodes[list[i]].kind != kindRepeat || !s.spend(len(list)/8) {
			continue
		}
		for j := 0; j < len(list); j++ {
			x, y := s.nodes[list[i]], list[j]
			lo, hi := x.b, x.c
			body, least, most := s.counted(y)
			switch {
			case i == j:
				continue
			case y == Epsilon && lo == 1:
				lo = 0
			case body == ID(x.a) && least <= plus(hi, 1) && lo <= plus(most, 1):
				lo, hi = min(lo, least), max(hi, most)
			default:
				continue
			}
			list[i] = s.repeat(ID(x.a), lo, hi)
			list = slices.Delete(list, j, j+1)
			if j < i {
				i--
			}
			j = -1
			if s.err != nil || s.nodes[list[i]].kind != kindRepeat {
				break
			}
		}
	}
	return list
}

// absorb drops from a sorted union what another member holds: the empty string, texts beside all texts, anything beside all
// strings; an expression beside its complement is all strings.
func (s *Store) absorb(list []ID) []ID {
	nullable, allText, all, complement := 0, false, false, false
	for _, id := range list {
		n := &s.nodes[id]
		nullable += int(n.flags & isNullable)
		allText = allText || id == s.allText
		all = all || id == s.all
		if id == s.full || n.kind == kindNot && n.b == 1 && has(list, ID(n.a)) {
			return append(list[:0], s.full)
		}
		complement = complement || n.kind == kindNot && n.b == 0 && has(list, ID(n.a))
	}
	if complement {
		all = true
		list = append(list, s.all)
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return slices.DeleteFunc(list, func(id ID) bool {
		return id == Epsilon && nullable > 1 || all && id != s.all && s.has(id, noFF) ||
			allText && id != s.allText && s.has(id, isText)
	})
}

// has reports whether a sorted list holds an expression.
func has(list []ID, id ID) bool {
	_, ok := slices.BinarySearch(list, id)
	return ok
}
