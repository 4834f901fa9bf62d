package regex

import "math"

// Free returns for how many code points of clean text the strings of an expression go on, whatever the code points are, as far as
// its form shows: that many, or fewer, are the beginning of a string. math.MaxInt: any number. Clean code points are those from
// U+0020 on without U+007F, the double quote and the backslash.
func (s *Store) Free(id ID) int {
	n := s.nodes[id]
	switch {
	case n.kind == kindQuoted && n.b == quoteText:
		return s.spanOf(ID(n.a)).free()
	case n.kind == kindQuoted:
		return 0
	case n.kind == kindConcat:
		if free := s.Free(ID(n.a)); free > 0 {
			return free
		}
	case n.kind == kindOr:
		most := 0
		for _, k := range s.kids[n.a : n.a+n.b] {
			most = max(most, s.Free(k))
		}
		return most
	}
	return s.spanOf(id).free()
}

// A textSpan is a range of numbers of code points: all clean texts of so many are in an expression.
type textSpan struct{ lo, hi uint32 }

// noSpan is the range of an expression of which nothing is known.
var noSpan = textSpan{inf, 0}

// free returns how many code points any beginning may have.
func (t textSpan) free() int {
	switch {
	case t.lo > t.hi:
		return 0
	case t.hi == inf:
		return math.MaxInt
	}
	return int(t.hi)
}

// spanOf returns numbers of code points such that an expression has all clean texts of so many.
func (s *Store) spanOf(id ID) textSpan {
	n := s.nodes[id]
	switch n.kind {
	case kindEpsilon:
		return textSpan{0, 0}
	case kindRepeat:
		if id == s.all || id == s.full {
			return textSpan{0, inf}
		}
		if s.hasClean(ID(n.a)) {
			return textSpan{n.b, n.c}
		}
	case kindNot:
		if longest := s.nodes[n.a].max; longest < inf {
			return textSpan{longest + 1, inf}
		}
	case kindConcat:
		x, y := s.spanOf(ID(n.a)), s.spanOf(ID(n.b))
		if x.lo <= x.hi && y.lo <= y.hi {
			return textSpan{plus(x.lo, y.lo), plus(x.hi, y.hi)}
		}
	case kindAnd:
		t := textSpan{0, inf}
		for _, k := range s.kids[n.a : n.a+n.b] {
			x := s.spanOf(k)
			t.lo, t.hi = max(t.lo, x.lo), min(t.hi, x.hi)
		}
		return t
	case kindOr:
		best := noSpan
		for _, k := range s.kids[n.a : n.a+n.b] {
			if x := s.spanOf(k); x.lo <= x.hi && x.hi >= best.hi {
				best = x
			}
		}
		return best
	}
	return noSpan
}

// hasClean reports whether an expression has every clean text of one code point.
func (s *Store) hasClean(id ID) bool {
	if id == s.anyRune {
		return true
	}
	known, ok := s.cleans[id]
	if !ok {
		clean := s.Runes(Range{0x20, 0x21}, Range{0x23, 0x5B}, Range{0x5D, 0x7E}, Range{0x80, 0x10FFFF})
		known = s.Contains(id, clean)
		if s.cleans == nil {
			s.cleans = map[ID]bool{}
		}
		s.cleans[id] = known
	}
	return known
}

// Longest returns a bound of the lengths of an expression's strings in bytes; math.MaxInt: none is known.
func (s *Store) Longest(id ID) int {
	if n := s.nodes[id].max; n < inf {
		return int(n)
	}
	return math.MaxInt
}
