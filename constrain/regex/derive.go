package regex

import "slices"

// Derive returns the strings that follow the byte b in the strings of an expression (Brzozowski's derivative); [Nothing] if and
// only if no string begins with b.
func (s *Store) Derive(id ID, b byte) ID {
	d := s.derive(id, b)
	if s.nodes[d].flags&isSure != 0 || d == Nothing {
		return d
	}
	if !s.empty(d) && s.err == nil {
		return d
	}
	return Nothing
}

// derive is Derive whose result may be an empty set other than Nothing.
func (s *Store) derive(id ID, b byte) ID {
	if s.err != nil {
		return Nothing
	}
	n := &s.nodes[id]
	switch n.kind {
	case kindNothing, kindEpsilon:
		return Nothing
	case kindSet:
		if s.sets[n.a].Has(b) {
			return Epsilon
		}
		return Nothing
	case kindLiteral:
		if s.text[n.a] == b {
			return s.literal(n.a+1, n.b, n.c)
		}
		return Nothing
	}
	if n.row == 0 {
		if !s.openRow(id) {
			return Nothing
		}
		n = &s.nodes[id]
	}
	cell := n.row + uint32(s.parts[n.part].class[b])
	d := s.rows[cell]
	if d == unknown {
		if !s.spend(1) {
			return Nothing
		}
		d = s.step(id, b)
		s.rows[cell] = d
	}
	return d
}

// openRow makes room for the derivatives of an expression.
func (s *Store) openRow(id ID) bool {
	p := s.partition(id)
	n := s.parts[p].n
	if !s.grow((n + 8) / 16) {
		return false
	}
	s.nodes[id].row = uint32(len(s.rows))
	for range n {
		s.rows = append(s.rows, unknown)
	}
	return true
}

// step makes a derivative.
func (s *Store) step(id ID, b byte) ID {
	n := s.nodes[id]
	switch n.kind {
	case kindWords:
		return s.deriveWords(id, b)
	case kindConcat:
		d := s.concat(s.derive(ID(n.a), b), ID(n.b))
		if s.has(ID(n.a), isNullable) {
			d = s.or2(d, s.derive(ID(n.b), b))
		}
		return d
	case kindRepeat:
		most := n.c
		if most != inf {
			most--
		}
		d := s.derive(ID(n.a), b)
		if d == Nothing {
			return Nothing
		}
		return s.concat(d, s.repeat(ID(n.a), max(n.b, 1)-1, most))
	case kindOr:
		return s.stepOr(&n, b)
	case kindAnd:
		return s.stepAnd(&n, b)
	case kindNot:
		if n.b == 0 && b == 0xFF {
			return Nothing
		}
		return s.not(s.derive(ID(n.a), b), n.b)
	case kindQuoted:
		return s.stepQuoted(&n, b)
	case kindMachine:
		if b == 0xFF {
			return Nothing
		}
		m := s.auto[n.a]
		if next, alive := m.m.Step(m.state, b); alive {
			return s.machine(m.m, next)
		}
	}
	return Nothing
}

// stepOr is the derivative of a union.
func (s *Store) stepOr(n *node, b byte) ID {
	base := len(s.tmp)
	s.spend(int(n.b) / 4)
	for i := n.a; i < n.a+n.b; i++ {
		if d := s.derive(s.kids[i], b); d != Nothing {
			s.spread(kindOr, d)
		}
	}
	id := s.or(s.tmp[base:])
	s.tmp = s.tmp[:base]
	return id
}

// stepAnd is the derivative of an intersection.
func (s *Store) stepAnd(n *node, b byte) ID {
	base := len(s.tmp)
	defer func() { s.tmp = s.tmp[:base] }()
	for i := n.a; i < n.a+n.b; i++ {
		d := s.derive(s.kids[i], b)
		if d == Nothing {
			return Nothing
		}
		s.spread(kindAnd, d)
	}
	return s.and(s.tmp[base:])
}

// Nullable reports whether an expression holds the empty string.
func (s *Store) Nullable(id ID) bool { return s.nodes[id].flags&isNullable != 0 }

// Matches reports whether an expression holds a text.
func (s *Store) Matches(id ID, text string) bool {
	for i := 0; i < len(text) && id != Nothing; i++ {
		id = s.derive(id, text[i])
	}
	return s.err == nil && s.Nullable(id)
}

// First returns the bytes that strings of an expression begin with.
func (s *Store) First(id ID) (set Set) {
	if n := &s.nodes[id]; n.kind == kindSet {
		return s.sets[n.a]
	}
	p := s.parts[s.partition(id)]
	alive := make([]bool, p.n)
	for c, b := range p.first {
		alive[c] = s.Derive(id, b) != Nothing
	}
	for b, c := range p.class {
		if alive[c] {
			set[b>>6] |= 1 << (b & 63)
		}
	}
	return set
}

// Contains reports whether every string of b is in a.
func (s *Store) Contains(a, b ID) bool {
	if a == b || b == Nothing || a == s.full || a == s.all && s.has(b, noFF) || a == s.allText && s.has(b, isText) {
		return true
	}
	if n := s.nodes[b]; n.kind == kindOr {
		kids := slices.Clone(s.kids[n.a : n.a+n.b])
		return !slices.ContainsFunc(kids, func(k ID) bool { return !s.Contains(a, k) })
	}
	return s.IsEmpty(s.and2(b, s.not(a, 1)))
}
