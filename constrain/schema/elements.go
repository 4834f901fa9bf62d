package schema

import (
	"strings"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// elements appends the edges of a place within an array.
func (s *source) elements(dst []grammar.Edge, p place) []grammar.Edge {
	a := s.c.arrays[p.of]
	state := arrayState{n: p.n, counts: s.texts[p.counts]}
	if p.kind != atItem && a.final(state) {
		shut := s.shutList
		if p.kind == atOpen {
			shut = s.closeEmptyList
		}
		dst = append(dst, grammar.Edge{Lexeme: shut, To: s.end()})
	}
	if int(p.n) >= a.max {
		return dst
	}
	items := s.items(nil, p, a, state)
	if p.kind != atAfter {
		return append(dst, items...)
	}
	if len(items) > 0 {
		p.kind = atItem
		dst = append(dst, grammar.Edge{Lexeme: s.comma, To: s.node(p)})
	}
	return dst
}

// items appends the edges of the next element.
func (s *source) items(dst []grammar.Edge, p place, a *array, state arrayState) []grammar.Edge {
	c := s.c
	for _, x := range c.itemChoices(a, int(p.n), []rune(state.counts)) {
		if !c.sat(x.f) {
			continue
		}
		next := a.add(state, x.counts)
		if !c.ending(a, next, a.ends) {
			continue
		}
		to := place{kind: atAfter, of: p.of, n: next.n, counts: s.id(next.counts), seen: p.seen}
		if a.unique && a.max > 1 {
			dst = s.different(dst, a, x.f, to)
		} else {
			dst = s.called(dst, x.f, s.node(to))
		}
	}
	return dst
}

// different appends the edge of an element that equals none before it. The places behind it depend on the element.
func (s *source) different(dst []grammar.Edge, a *array, f *formula, to place) []grammar.Edge {
	c := s.c
	if c.sideSat(f, 0) || c.sideSat(f, 1) { // one element at most, by checkArray
		return s.called(dst, f, s.node(to))
	}
	left := *c.scalarsOf(f)
	seen := map[string]bool{}
	s.each(to.seen, func(key string) {
		seen[key] = true
		s.drop(&left, key)
	})
	if int(to.n) < a.min {
		s.leave(a, f, to, &left, seen)
	}
	if left.Empty() {
		return dst
	}
	return append(dst, grammar.Edge{Lexeme: s.spellPlain(left), Read: func(text []byte) (grammar.Node, error) {
		next := to
		next.seen = s.with(to.seen, elementKey(string(text)))
		return s.node(next), nil
	}})
}

// leave takes from few values those that would leave too few for the elements that must follow.
func (s *source) leave(a *array, f *formula, to place, left *ScalarSet, seen map[string]bool) {
	c := s.c
	if !c.spread(a, int(to.n)-1, seen) {
		*left = ScalarSet{}
		return
	}
	if int(to.n) >= len(a.items) {
		return // all that follow have the same values: which one is taken makes no difference
	}
	keys, finite := c.distinct(f)
	if !finite {
		keys, finite = s.owed(a, int(to.n))
	}
	if !finite {
		return
	}
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		if !c.spread(a, int(to.n), seen) {
			s.drop(left, key)
		}
		delete(seen, key)
	}
}

// owed returns the values that few values must suffice for, of the elements from an index up to the minimum.
func (s *source) owed(a *array, from int) (keys []string, some bool) {
	for i := from; i < a.min; i++ {
		if few, finite := s.c.distinct(s.c.itemOf(a, i)); finite {
			keys, some = append(keys, few...), true
		} else if i >= len(a.items)-1 {
			break
		}
	}
	return keys, some
}

// drop takes the value of a key away.
func (s *source) drop(left *ScalarSet, key string) {
	c := s.c
	switch key[0] {
	case 'n':
		left.Null = false
	case 't':
		left.True = false
	case 'f':
		left.False = false
	case '"':
		left.Text = c.lang.Without(left.Text, c.r.Literal(key[1:]))
		if c.r.IsEmpty(left.Text) {
			left.Text = regex.Nothing
		}
	default:
		left.Number = c.lang.Without(left.Number, c.lang.Equal(key[1:]))
		if c.r.IsEmpty(left.Number) {
			left.Number = regex.Nothing
		}
	}
}

// elementKey returns one text for all spellings of a scalar.
func elementKey(text string) string {
	switch text[0] {
	case 'n', 't', 'f':
		return text[:1]
	case '"':
		name, err := nameIn(text)
		if err != nil {
			return text
		}
		return `"` + name
	}
	return "0" + document.Canonical(strings.TrimSpace(text))
}
