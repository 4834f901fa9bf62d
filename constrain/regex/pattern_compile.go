package regex

import (
	"fmt"
)

// follow is the language of the rest of the text behind a place, for each kind of character before the place: follow[0]
// if there is none, follow[1+i] if it is in cells[i]. An assertion is then an intersection: a lookahead says what the
// rest begins with, a lookbehind at which indices there is a rest at all.
type follow []ID

// compiler makes languages of the nodes of one expression.
type compiler struct {
	s      *Store
	p      *parser
	cells  []patternSet // a partition of all characters, by what the assertions ask
	text   ID
	sets   map[*Range]ID // by the first range, for sets that many nodes share
	copies int
	err    error
}

// maxCells bounds the kinds of characters that assertions can tell apart.
const maxCells = 16

func newCompiler(s *Store, p *parser) *compiler {
	c := &compiler{s: s, p: p, text: s.Repeat(s.AnyRune(), 0, -1), sets: map[*Range]ID{}, cells: []patternSet{everything}}
	for _, ask := range p.past {
		var finer []patternSet
		for _, cell := range c.cells {
			for _, part := range []patternSet{cell.and(ask), cell.and(ask.not())} {
				if len(part) > 0 {
					finer = append(finer, part)
				}
			}
		}
		if c.cells = finer; len(finer) > maxCells {
			c.err = p.fail(0, "the assertions tell more than %d kinds of characters apart", maxCells)
			return c
		}
	}
	return c
}

// all is a follow that is the same behind every character.
func (c *compiler) all(id ID) follow {
	f := make(follow, len(c.cells)+1)
	for i := range f {
		f[i] = id
	}
	return f
}

// same reports whether f[from:] is one language.
func (f follow) same(from int) bool {
	for _, id := range f[from:] {
		if id != f[from] {
			return false
		}
	}
	return true
}

func (f follow) equal(g follow) bool {
	for i := range f {
		if f[i] != g[i] {
			return false
		}
	}
	return true
}

// each applies a function to every language.
func (f follow) each(do func(i int, id ID) ID) follow {
	out := make(follow, len(f))
	for i, id := range f {
		out[i] = do(i, id)
	}
	return out
}

// or joins two follows.
func (c *compiler) or(f, g follow) follow {
	return f.each(func(i int, id ID) ID { return c.s.Or(id, g[i]) })
}

// search is the language of the texts in which a node matches anywhere.
func (c *compiler) search(n *patternNode) ID {
	if c.err != nil {
		return Nothing
	}
	f := c.language(n, c.all(c.text))
	if f.same(0) {
		return c.s.Concat(c.text, f[0])
	}
	ways := []ID{f[0]}
	if f.same(1) {
		ways = append(ways, c.s.Concat(c.s.Repeat(c.s.AnyRune(), 1, -1), f[1]))
	} else {
		for i, cell := range c.cells {
			ways = append(ways, c.s.Concat(c.text, c.runes(cell), f[1+i]))
		}
	}
	return c.s.Or(ways...)
}

// runes is the language of the characters of a set.
func (c *compiler) runes(s patternSet) ID {
	if len(s) == 0 {
		return Nothing
	}
	id, ok := c.sets[&s[0]]
	if !ok {
		id = c.s.Runes(s...)
		c.sets[&s[0]] = id
	}
	return id
}

// language is the language of the texts that begin with what n matches and go on with f.
func (c *compiler) language(n *patternNode, f follow) follow {
	switch {
	case c.err != nil || c.s.Err() != nil:
		return c.all(Nothing)
	case n.pure && f.same(0):
		return c.all(c.s.Concat(c.alone(n), f[0]))
	}
	switch n.op {
	case opSet:
		return c.character(n.set, f)
	case opCat:
		for i := len(n.subs) - 1; i >= 0; i-- {
			f = c.language(n.subs[i], f)
		}
		return f
	case opAlt:
		out := c.all(Nothing)
		for _, sub := range n.subs {
			out = c.or(out, c.language(sub, f))
		}
		return out
	case opRepeat:
		if n.pure {
			return c.pureRepeat(n, f)
		}
		return c.repeat(n, f)
	}
	return c.assertion(n, f)
}

// character is the language of one character of a set and then f.
func (c *compiler) character(s patternSet, f follow) follow {
	if f.same(1) {
		return c.all(c.s.Concat(c.runes(s), f[1]))
	}
	var ways []ID
	for i, cell := range c.cells {
		ways = append(ways, c.s.Concat(c.runes(s.and(cell)), f[1+i]))
	}
	return c.all(c.s.Or(ways...))
}

// assertion is the part of f where an assertion holds.
func (c *compiler) assertion(n *patternNode, f follow) follow {
	switch n.op {
	case opEnd:
		return f.each(func(_ int, id ID) ID { return c.s.And(id, Epsilon) })
	case opStop:
		here := c.s.Or(Epsilon, c.s.Concat(c.s.Literal("\n"), c.text))
		return f.each(func(_ int, id ID) ID { return c.s.And(id, here) })
	case opLook:
		look := c.language(n.subs[0], c.all(c.text))
		return f.each(func(i int, id ID) ID {
			if n.negated {
				return c.s.And(id, c.s.Not(look[i]))
			}
			return c.s.And(id, look[i])
		})
	case opBound:
		word := c.s.Concat(c.runes(n.set), c.text)
		return f.each(func(i int, id ID) ID {
			if c.behind(&patternNode{op: opSet, set: n.set}, i) != n.negated {
				return c.s.And(id, c.s.Not(word))
			}
			return c.s.And(id, word)
		})
	case opStart, opLine, opBehind:
		return f.each(func(i int, id ID) ID {
			if c.behind(n, i) {
				return id
			}
			return Nothing
		})
	}
	return f
}

// behind reports whether a node that looks at the character before a place holds where that is of kind i.
func (c *compiler) behind(n *patternNode, i int) bool {
	switch n.op {
	case opStart:
		return i == 0
	case opLine:
		return i == 0 || c.cells[i-1].has('\n')
	case opSet:
		return i > 0 && len(c.cells[i-1].and(n.set)) > 0 // a cell lies inside of the set or outside
	case opAlt:
		for _, sub := range n.subs {
			if c.behind(sub, i) {
				return true
			}
		}
	case opBehind:
		return c.behind(n.subs[0], i) != n.negated
	}
	return false
}

// alone is the language of a node that looks at nothing around it.
func (c *compiler) alone(n *patternNode) ID {
	switch n.op {
	case opSet:
		return c.runes(n.set)
	case opCat:
		return c.sequence(n.subs)
	case opAlt:
		ways := make([]ID, len(n.subs))
		for i, sub := range n.subs {
			ways[i] = c.alone(sub)
		}
		return c.s.Or(ways...)
	case opRepeat:
		return c.s.Repeat(c.alone(n.subs[0]), n.min, n.max)
	}
	return Epsilon
}

// sequence joins nodes; characters next to each other become one literal.
func (c *compiler) sequence(subs []*patternNode) ID {
	var parts []ID
	var literal []rune
	flush := func() {
		if len(literal) > 0 {
			parts = append(parts, c.s.Literal(string(literal)))
			literal = literal[:0]
		}
	}
	for _, sub := range subs {
		if r, ok := sub.letter(); ok {
			literal = append(literal, r)
			continue
		}
		flush()
		parts = append(parts, c.alone(sub))
	}
	flush()
	return c.s.Concat(parts...)
}

// letter returns the only character of a node; surrogates have no spelling and stay sets.
func (n *patternNode) letter() (rune, bool) {
	if n.op != opSet || len(n.set) != 1 || n.set[0].Lo != n.set[0].Hi || 0xd800 <= n.set[0].Lo && n.set[0].Lo < 0xe000 {
		return 0, false
	}
	return n.set[0].Lo, true
}

// refuse notes the first reason why an expression cannot be compiled.
func (c *compiler) refuse(at int, format string, a ...any) follow {
	if c.err == nil {
		c.err = c.p.fail(at, "%s", fmt.Sprintf(format, a...))
	}
	return c.all(Nothing)
}
