package regex

// Bytes returns the strings of one byte of the set.
func (s *Store) Bytes(set Set) ID {
	if s.err != nil || set == (Set{}) {
		return Nothing
	}
	s.sets = append(s.sets, set)
	before := len(s.nodes)
	id := s.add(node{kind: kindSet, a: uint32(len(s.sets) - 1)})
	if int(id) < before {
		s.sets = s.sets[:len(s.sets)-1]
	}
	return id
}

// byteID returns the string of one byte.
func (s *Store) byteID(b byte) ID {
	if s.single[b] == Nothing {
		var set Set
		set.Add(b, b)
		s.single[b] = s.Bytes(set)
	}
	return s.single[b]
}

// Concat returns the strings made of one string of each expression, in order; of none, [Epsilon].
func (s *Store) Concat(ids ...ID) ID {
	base := len(s.tmp)
	defer func() { s.tmp = s.tmp[:base] }()
	for _, id := range ids {
		s.unchain(id, longChain)
	}
	list := s.joinLiterals(s.tmp[base:])
	id := Epsilon
	for i := len(list) - 1; i >= 0; i-- {
		id = s.concat(list[i], id)
	}
	return id
}

// How long a chain of concatenations may be that is taken apart to keep chains leaning to the right. The others are left as
// heads of a new chain, so that a chain built in a loop costs no more than its length times this.
const (
	longChain  = 64 // in Concat
	shortChain = 8  // in derivatives
)

// unchain appends the parts of a chain of concatenations to the scratch stack; those of a long one, itself.
func (s *Store) unchain(id ID, limit int) {
	base := len(s.tmp)
	last := id
	for ; s.nodes[last].kind == kindConcat && len(s.tmp)-base < limit; last = ID(s.nodes[last].b) {
		s.tmp = append(s.tmp, ID(s.nodes[last].a))
	}
	s.spend((len(s.tmp) - base) / 4)
	if s.nodes[last].kind == kindConcat {
		s.tmp, last = s.tmp[:base], id
	}
	s.tmp = append(s.tmp, last)
}

// concat returns x followed by y.
func (s *Store) concat(x, y ID) ID {
	switch {
	case s.err != nil || s.has(x, isEmpty) || s.has(y, isEmpty):
		return Nothing
	case x == Epsilon:
		return y
	case y == Epsilon:
		return x
	}
	if s.nodes[x].kind != kindConcat {
		return s.link(x, y)
	}
	base := len(s.tmp)
	s.unchain(x, shortChain)
	for i := len(s.tmp) - 1; i >= base; i-- {
		y = s.link(s.tmp[i], y)
	}
	s.tmp = s.tmp[:base]
	return y
}

// link returns the head x followed by y; neighbours that repeat the same expression become one.
func (s *Store) link(x, y ID) ID {
	if s.err != nil {
		return Nothing
	}
	next, rest := y, Epsilon
	if n := &s.nodes[y]; n.kind == kindConcat {
		next, rest = ID(n.a), ID(n.b)
	}
	xBody, xMin, xMax := s.counted(x)
	yBody, yMin, yMax := s.counted(next)
	if xBody == yBody && (s.nodes[x].kind == kindRepeat || s.nodes[next].kind == kindRepeat) {
		both := s.repeat(xBody, plus(xMin, yMin), plus(xMax, yMax))
		if rest == Epsilon {
			return both
		}
		return s.link(both, rest)
	}
	depth := s.nodes[x].depth
	if s.has(x, isNullable) {
		depth = max(depth, s.nodes[y].depth)
	}
	return s.add(node{kind: kindConcat, depth: depth + 1, a: uint32(x), b: uint32(y)})
}

// counted returns an expression as a repetition.
func (s *Store) counted(id ID) (body ID, min, max uint32) {
	if n := &s.nodes[id]; n.kind == kindRepeat {
		return ID(n.a), n.b, n.c
	}
	return id, 1, 1
}

// Repeat returns the strings made of min to max strings of an expression; max < 0: of min or more. It is one expression
// however large the numbers.
func (s *Store) Repeat(id ID, min, max int) ID {
	if max >= 0 && min > max {
		return Nothing
	}
	most := uint32(inf)
	if max >= 0 && max < inf {
		most = uint32(max)
	}
	if min >= inf-1 {
		return s.fail("a repetition of at least %d times", min)
	}
	if min < 0 {
		min = 0
	}
	return s.repeat(id, uint32(min), most)
}

// repeat is Repeat; most == inf: without bound. Nested repetitions become one where their counts leave no gaps.
func (s *Store) repeat(id ID, least, most uint32) ID {
	if s.err != nil {
		return Nothing
	}
	if s.has(id, isNullable) {
		least = 0
	}
	switch {
	case s.has(id, isEmpty):
		if least == 0 {
			return Epsilon
		}
		return Nothing
	case id == Epsilon || most == 0:
		return Epsilon
	case least == 1 && most == 1:
		return id
	}
	if n := &s.nodes[id]; n.kind == kindRepeat {
		if lo, hi, ok := flatten(n.b, n.c, least, most); ok {
			return s.repeat(ID(n.a), lo, hi)
		}
	}
	return s.add(node{kind: kindRepeat, depth: s.nodes[id].depth + 1, a: uint32(id), b: least, c: most})
}

// flatten returns the counts of a repetition from m to n times that is itself repeated from p to q times, if they are a range
// and can be written as numbers.
func flatten(m, n, p, q uint32) (lo, hi uint32, ok bool) {
	lo, hi = times(m, p), times(n, q)
	if lo == inf || hi == inf && n != inf && q != inf {
		return 0, 0, false
	}
	if p == q {
		return lo, hi, true
	}
	// The ranges m*k..n*k and m*(k+1)..n*(k+1) must touch for all k from p on; they do if the first two do.
	if p == 0 {
		return lo, hi, m <= 1
	}
	next, end := times(m, p+1), times(n, p)
	return lo, hi, next != inf && (end == inf || next <= end+1)
}

// Not returns the strings over the bytes 0x00 to 0xFE that are not in an expression.
func (s *Store) Not(id ID) ID { return s.not(id, 0) }

// not returns the strings that are not in an expression: over the bytes up to 0xFE (full 0), or all (full 1).
func (s *Store) not(id ID, full uint32) ID {
	if s.err != nil {
		return Nothing
	}
	everything := s.all
	if full == 1 {
		everything = s.full
	}
	n := &s.nodes[id]
	switch {
	case n.flags&isEmpty != 0:
		return everything
	case id == everything || id == s.full:
		return Nothing
	case n.kind == kindNot && n.b == full && (full == 1 || s.has(ID(n.a), noFF)):
		return ID(n.a)
	}
	return s.add(node{kind: kindNot, depth: n.depth + 1, a: uint32(id), b: full})
}

// Machine returns the strings that take a machine from a state to a final one. The bytes 0xFF lead nowhere.
func (s *Store) Machine(m Machine, state int) ID {
	if s.err != nil {
		return Nothing
	}
	id := s.machine(m, state)
	if s.has(id, isNullable) {
		return id
	}
	for b := range 255 {
		if _, alive := m.Step(state, byte(b)); alive {
			return id
		}
	}
	return Nothing
}

// machine is Machine for a state from which a final one can be reached.
func (s *Store) machine(m Machine, state int) ID {
	key := auto{m, state}
	at, ok := s.autos[key]
	if !ok {
		if s.autos == nil {
			s.autos = map[auto]uint32{}
		}
		at = uint32(len(s.auto))
		s.auto = append(s.auto, key)
		s.autos[key] = at
		s.grow(1)
	}
	return s.add(node{kind: kindMachine, a: at})
}
