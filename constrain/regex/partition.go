package regex

// partition groups the bytes into classes; bytes of a class have the same derivative.
type partition struct {
	class [256]uint8
	n     int    // classes
	first []byte // the smallest byte of each class, rising
}

// intern returns the index of the partition whose classes are the equal labels.
func (s *Store) intern(label *[256]uint16) uint32 {
	var p partition
	var number [256]int16 // class + 1, by label: labels are below 256 or renumbered by the caller
	for b, l := range label {
		if number[l] == 0 {
			p.first = append(p.first, byte(b))
			p.n++
			number[l] = int16(p.n)
		}
		p.class[b] = uint8(number[l] - 1)
	}
	at, ok := s.partOf[p.class]
	if !ok {
		at = uint32(len(s.parts))
		s.parts = append(s.parts, &p)
		s.partOf[p.class] = at
		s.grow(16)
	}
	return at
}

// product returns the coarsest partition finer than two others.
func (s *Store) product(x, y uint32) uint32 {
	switch {
	case x == y || y == 1:
		return x
	case x == 1:
		return y
	case x > y:
		x, y = y, x
	}
	key := uint64(x)<<32 | uint64(y)
	if at, ok := s.products[key]; ok {
		return at
	}
	s.spend(4)
	s.grow(1)
	p, q := s.parts[x], s.parts[y]
	if s.pairs == nil {
		s.pairs = make([]uint16, 1<<16)
	}
	var label [256]uint16
	next := uint16(0)
	for b := range label {
		cell := &s.pairs[int(p.class[b])<<8|int(q.class[b])]
		if *cell == 0 {
			next++
			*cell = next
		}
		label[b] = *cell - 1
	}
	for b := range label {
		s.pairs[int(p.class[b])<<8|int(q.class[b])] = 0
	}
	at := s.intern(&label)
	s.products[key] = at
	return at
}

// marked returns the partition in which each byte of a text is a class and the rest is one.
func (s *Store) marked(text string) uint32 {
	var label [256]uint16
	for i := range len(text) {
		label[text[i]] = uint16(i + 1)
	}
	return s.intern(&label)
}

// partition returns the index of an expression's classes of bytes.
func (s *Store) partition(id ID) uint32 {
	if p := s.nodes[id].part; p != 0 {
		return p
	}
	p := s.makePartition(id)
	s.nodes[id].part = p
	return p
}

func (s *Store) makePartition(id ID) uint32 {
	n := s.nodes[id]
	switch n.kind {
	case kindSet:
		var label [256]uint16
		for b := range label {
			if s.sets[n.a].Has(byte(b)) {
				label[b] = 1
			}
		}
		return s.intern(&label)
	case kindLiteral:
		return s.partition(s.byteID(s.text[n.a]))
	case kindWords:
		return s.partitionWords(&n)
	case kindConcat:
		p := s.partition(ID(n.a))
		if s.has(ID(n.a), isNullable) {
			p = s.product(p, s.partition(ID(n.b)))
		}
		return p
	case kindRepeat:
		return s.partition(ID(n.a))
	case kindOr, kindAnd:
		p := uint32(1)
		for i := n.a; i < n.a+n.b && s.err == nil; i++ {
			p = s.product(p, s.partition(s.kids[i]))
		}
		return p
	case kindNot:
		p := s.partition(ID(n.a))
		if n.b == 0 {
			p = s.product(p, s.marked("\xFF"))
		}
		return p
	case kindQuoted:
		return s.partitionQuoted(&n)
	case kindMachine:
		return s.partitionMachine(s.auto[n.a])
	}
	return 1
}

// partitionWords makes each byte that can come next a class.
func (s *Store) partitionWords(n *node) uint32 {
	depth := n.c & depthBits
	var label [256]uint16
	next := uint16(0)
	for i := n.a; i < n.b; {
		w := s.words[i]
		if w.start+depth == w.end {
			i++
			continue
		}
		b := s.text[w.start+depth]
		next++
		label[b] = next % 256 // all 256 bytes: the last takes label 0, which is free
		rest := *n
		rest.a = i
		i += uint32(len(s.branch(&rest, b)))
	}
	return s.intern(&label)
}

// partitionMachine groups the bytes by the state that they lead to.
func (s *Store) partitionMachine(m auto) uint32 {
	var label [256]uint16
	var seen [256]int // states, by label - 1
	n := 0
	s.spend(16)
	for b := range 255 {
		next, alive := m.m.Step(m.state, byte(b))
		if !alive {
			continue
		}
		i := n - 1 // neighbours lead to the same state more often than not
		for i >= 0 && seen[i] != next {
			i--
		}
		if i < 0 {
			i, seen[n] = n, next
			n++
		}
		label[b] = uint16(i + 1)
	}
	return s.intern(&label)
}
