package regex

import (
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// kind says what a node's fields mean.
type kind uint8

const (
	kindNothing kind = iota
	kindEpsilon
	kindSet     // a: index in sets
	kindLiteral // text[a:b], at least two bytes; c: valid and clean of the whole text
	kindWords   // words[a:b], sorted, all with the same first c&depthBits bytes, without those; c also has validBit, cleanBit
	kindConcat  // a, then b
	kindRepeat  // a, from b to c times; c == inf: without bound
	kindOr      // kids[a:a+b], sorted
	kindAnd     // kids[a:a+b], sorted
	kindNot     // strings not in a; b: 0 over bytes 0x00..0xFE, 1 over all bytes
	kindQuoted  // a: decoded text still to come; b: state of the decoder; c: code read so far
	kindMachine // auto[a]
)

const (
	validBit  = 1 << 31 // whole texts are valid UTF-8
	cleanBit  = 1 << 30 // whole texts are without 0xFF
	depthBits = cleanBit - 1

	inf     = math.MaxUint32
	unknown = ID(math.MaxUint32) // a derivative that is not made yet
)

// Properties of a node.
const (
	isNullable = 1 << iota // holds the empty string
	isSure                 // not empty, as its construction shows or a search has found
	isEmpty                // empty, as its construction shows or a search has found
	isText                 // every string is valid UTF-8 (if set)
	noFF                   // no string has the byte 0xFF (if set)
)

// node is an expression.
type node struct {
	kind     kind
	flags    uint8
	depth    uint16 // how deep a derivative recurses
	a, b, c  uint32
	min, max uint32 // bounds of the lengths of strings, in bytes; they hold for sets that are empty too
	part     uint32 // classes of bytes, in parts; 0: not made yet
	row      uint32 // derivatives by class, in rows
}

// span is a part of the store's text.
type span struct{ start, end uint32 }

// auto is a machine in a state.
type auto struct {
	m     Machine
	state int
}

// mix is a step of a hash function.
func mix(h uint64, v uint32) uint64 {
	h = (h ^ uint64(v)) * 0x9E3779B97F4A7C15
	return h ^ h>>29
}

// hash returns the hash of what makes n the expression that it is.
func (s *Store) hash(n *node) uint64 {
	h := mix(uint64(n.kind), 0)
	switch {
	case n.kind == kindSet:
		for _, w := range s.sets[n.a] {
			h = mix(mix(h, uint32(w)), uint32(w>>32))
		}
	case n.kind == kindOr || n.kind == kindAnd:
		for _, k := range s.kids[n.a : n.a+n.b] {
			h = mix(h, uint32(k))
		}
	case n.kind == kindLiteral && n.b-n.a <= shortText:
		for _, b := range s.text[n.a:n.b] {
			h = mix(h, uint32(b))
		}
	default:
		h = mix(mix(mix(h, n.a), n.b), n.c)
	}
	return h ^ h>>32
}

// shortText is the length in bytes up to which literals are the same when their bytes are; longer ones when their places are.
const shortText = 32

// same reports whether two nodes are the same expression.
func (s *Store) same(x, y *node) bool {
	if x.kind != y.kind {
		return false
	}
	switch {
	case x.kind == kindSet:
		return s.sets[x.a] == s.sets[y.a]
	case x.kind == kindOr || x.kind == kindAnd:
		return slices.Equal(s.kids[x.a:x.a+x.b], s.kids[y.a:y.a+y.b])
	case x.kind == kindLiteral && x.b-x.a <= shortText:
		return string(s.text[x.a:x.b]) == string(s.text[y.a:y.b])
	}
	return x.a == y.a && x.b == y.b && x.c == y.c
}

// find returns the node that is the same as n, or the slot of the table for it.
func (s *Store) find(n *node) (id ID, slot int) {
	mask := len(s.table) - 1
	for slot = int(s.hash(n)) & mask; s.table[slot] != 0; slot = (slot + 1) & mask {
		if s.same(&s.nodes[s.table[slot]], n) {
			return s.table[slot], slot
		}
	}
	return 0, slot
}

// add returns the expression n, which is made if it is new.
func (s *Store) add(n node) ID {
	if s.err != nil {
		return Nothing
	}
	id, slot := s.find(&n)
	if id != 0 {
		return id
	}
	if n.depth > maxDepth {
		return s.fail("expressions nested deeper than %d", maxDepth)
	}
	if !s.grow(1) {
		return Nothing
	}
	s.measure(&n)
	id = ID(len(s.nodes))
	s.nodes = append(s.nodes, n)
	s.table[slot] = id
	if 2*len(s.nodes) > len(s.table) {
		s.rehash()
	}
	return id
}

// rehash doubles the table.
func (s *Store) rehash() {
	s.table = make([]ID, 2*len(s.table))
	mask := len(s.table) - 1
	for id := 2; id < len(s.nodes); id++ {
		slot := int(s.hash(&s.nodes[id])) & mask
		for s.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		s.table[slot] = ID(id)
	}
}

// addList returns the union or intersection of a sorted list of at least two expressions.
func (s *Store) addList(k kind, list []ID) ID {
	n := node{kind: k, a: uint32(len(s.kids)), b: uint32(len(list))}
	for _, id := range list {
		n.depth = max(n.depth, s.nodes[id].depth+1)
	}
	s.kids = append(s.kids, list...)
	before := len(s.nodes)
	id := s.add(n)
	if int(id) < before {
		s.kids = s.kids[:n.a]
	} else {
		s.grow(len(list) / 16)
	}
	return id
}

// measure sets the flags and lengths of a new node.
func (s *Store) measure(n *node) {
	switch n.kind {
	case kindSet:
		set := &s.sets[n.a]
		n.min, n.max, n.flags = 1, 1, isSure
		n.flag(isText, set[2]|set[3] == 0)
		n.flag(noFF, !set.Has(0xFF))
	case kindLiteral:
		n.min, n.max, n.flags = n.b-n.a, n.b-n.a, isSure
		n.flag(isText, n.c&validBit != 0 && utf8.RuneStart(s.text[n.a]))
		n.flag(noFF, n.c&cleanBit != 0)
	case kindWords:
		s.measureWords(n)
	case kindConcat:
		x, y := &s.nodes[n.a], &s.nodes[n.b]
		n.min, n.max = plus(x.min, y.min), plus(x.max, y.max)
		n.flags = x.flags & y.flags & (isNullable | isSure | isText | noFF)
		n.flags |= (x.flags | y.flags) & isEmpty
	case kindRepeat:
		x := &s.nodes[n.a]
		n.min, n.max = times(x.min, n.b), times(x.max, n.c)
		n.flags = x.flags & (isNullable | isSure | isText | noFF)
		if n.b == 0 {
			n.flags |= isNullable | isSure
		}
	case kindOr:
		n.min, n.flags = inf, isText|noFF
		for _, k := range s.kids[n.a : n.a+n.b] {
			x := &s.nodes[k]
			n.min, n.max = min(n.min, x.min), max(n.max, x.max)
			n.flags = (n.flags | x.flags&(isNullable|isSure)) &^ (^x.flags & (isText | noFF))
		}
	case kindAnd:
		n.max, n.flags = inf, isNullable
		for _, k := range s.kids[n.a : n.a+n.b] {
			x := &s.nodes[k]
			n.min, n.max = max(n.min, x.min), min(n.max, x.max)
			n.flags = (n.flags | x.flags&(isText|noFF)) &^ (^x.flags & isNullable)
		}
		n.flag(isSure, n.flags&isNullable != 0)
	case kindNot:
		n.max = inf
		n.flag(noFF, n.b == 0)
		if s.nodes[n.a].flags&isNullable == 0 {
			n.flags |= isNullable | isSure
		} else {
			n.min = 1
		}
	case kindQuoted:
		s.measureQuoted(n)
	case kindMachine:
		n.max, n.flags = inf, isSure|noFF
		if m := s.auto[n.a]; m.m.Final(m.state) {
			n.flags |= isNullable
		} else {
			n.min = 1
		}
		if m, ok := s.auto[n.a].m.(interface{ ASCII() bool }); ok {
			n.flag(isText, m.ASCII())
		}
	}
}

// flag sets a property of a node if it holds.
func (n *node) flag(f uint8, holds bool) {
	if holds {
		n.flags |= f
	}
}

// plus adds lengths; inf stays inf.
func plus(x, y uint32) uint32 {
	if sum, carry := bits.Add32(x, y, 0); carry == 0 {
		return sum
	}
	return inf
}

// times multiplies a length and a count; inf stays inf, and nothing times inf is nothing.
func times(x, y uint32) uint32 {
	if hi, lo := bits.Mul32(x, y); hi == 0 && (x == 0 || y == 0 || x != inf && y != inf) {
		return lo
	}
	return inf
}

// has reports whether an expression has all the given properties.
func (s *Store) has(id ID, flags uint8) bool { return s.nodes[id].flags&flags == flags }
