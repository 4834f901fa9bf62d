package earley

import (
	"grove/constrain/vocab"
)

// mask returns the mask of a state, nil on errors.
func (e *Engine) mask(p *state) Mask {
	if p == nil || e.failed() {
		return nil
	}
	e.clock++
	p.used = e.clock
	if p.mask != nil {
		return p.mask
	}
	if !p.done && !e.noSlices {
		if q := e.near(p); q != p && q != nil {
			if p = q; p.mask != nil {
				p.used = e.clock
				return p.mask
			}
		}
	}
	m := make(Mask, e.vocab.Words())
	switch {
	case p.done:
	case e.greedy:
		e.within(m, p.configs[0], nil)
	default:
		e.maskAll(m, p)
	}
	if e.failed() {
		return nil
	}
	e.vocab.Spread(m)
	if e.ends(p) {
		for _, id := range e.vocab.End() {
			m[id>>6] |= 1 << (id & 63)
		}
	}
	if e.failed() {
		return nil
	}
	e.keepMask(p, m)
	return m
}

// within sets the tokens of a region that a greedy grammar allows behind a config at which the region begins; nil: all tokens.
func (e *Engine) within(m Mask, c config, g *region) {
	if c.lex == nil {
		return
	}
	in := e.inside(c.lex, g)
	if in == nil {
		return
	}
	for _, id := range in.few {
		m[id>>6] |= 1 << (id & 63)
	}
	for i, w := range in.many {
		m[i] |= w
	}
	for _, x := range in.exits {
		accept := x.accept
		if accept == nil {
			accept = e.only(c.lex)
		}
		if e.exit(m, c, accept, x); e.failed() {
			return
		}
	}
}

// only returns the set of the lexeme of a state with one.
func (e *Engine) only(q *lexState) *accepts {
	e.matched = append(e.matched[:0], q.pairs[0].lexeme)
	return e.accepts(e.matched)
}

// smallRegion is the number of nodes from which on what a region gives is kept.
const smallRegion = 64

// exit goes on with the rows behind lexemes that end before a region.
func (e *Engine) exit(m Mask, c config, accept *accepts, x *region) {
	if len(c.row.reads) > 0 && c.row.hasRead(c.lex.pairs) {
		e.exitText(m, c, accept, x)
		return
	}
	r := e.after(ending{c.row, accept, nil})
	if r == nil || r.start == nil {
		return
	}
	next := config{row: r, lex: r.start, fresh: true}
	if x.size >= smallRegion {
		e.within(m, next, x)
		return
	}
	for _, i := range x.nodes {
		if e.take(r.start, x.trie[i].Byte()) != nil {
			e.walk(m, x.trie, int(i), next)
		}
	}
}

// exitText is exit where the row behind a lexeme depends on its text.
func (e *Engine) exitText(m Mask, c config, accept *accepts, x *region) {
	for j, i := range x.nodes {
		at := c
		for _, b := range e.path(x, j) {
			next, ok := e.step(at, b)
			if !ok {
				return // an error
			}
			at = next
		}
		r := e.after(ending{at.row, accept, at.text})
		if r != nil && r.start != nil && e.take(r.start, x.trie[i].Byte()) != nil {
			e.walk(m, x.trie, int(i), config{row: r, lex: r.start, fresh: true})
		}
		if e.failed() {
			return
		}
	}
}

// walk sets the tokens of the subtree of a node that a greedy grammar allows behind the config before the node.
func (e *Engine) walk(m Mask, t vocab.Trie, node int, c config) {
	e.stack[t[node].Depth()-1] = c
	end := node + t[node].Size()
	for i := node; i < end && e.visit(); {
		n := t[i]
		d := n.Depth()
		next, ok := e.step(e.stack[d-1], n.Byte())
		if !ok {
			if e.failed() {
				return
			}
			i += n.Size()
			continue
		}
		e.stack[d] = next
		if id := n.Token(); id != vocab.None {
			m[id>>6] |= 1 << (id & 63)
		}
		i++
	}
}

// slices returns for how many code points of clean text a state of the lexer allows the tokens whatever they are, and a trie of the
// others.
func (e *Engine) slices(q *lexState) (int, vocab.Trie) {
	if e.noSlices {
		return 0, e.vocab.Trie()
	}
	n, exact := e.cleanDepth(q)
	level, t := e.vocab.Rest(n)
	if exact && n <= vocab.Levels {
		level = n
		_, t = e.vocab.Rest(vocab.Levels + 1)
	}
	return level, t
}

// maskAll sets the tokens behind a state of a grammar that is not greedy.
func (e *Engine) maskAll(m Mask, p *state) {
	t := e.vocab.Trie()
	if !e.noSlices {
		best := 0
		for _, c := range p.configs {
			n, _ := e.cleanDepth(c.lex)
			best = max(best, n)
		}
		level, rest := e.vocab.Rest(best)
		if level > 0 {
			t = rest
			for i, w := range e.vocab.Clean(level) {
				m[i] |= w
			}
		}
	}
	stack := e.stateStack
	stack[0] = p
	for i := 1; i < len(t) && e.visit(); {
		n := t[i]
		d := n.Depth()
		next := e.stepAll(stack[d-1], n.Byte())
		if next == nil {
			if e.failed() {
				return
			}
			i += n.Size()
			continue
		}
		stack[d] = next
		if id := n.Token(); id != vocab.None {
			m[id>>6] |= 1 << (id & 63)
		}
		i++
	}
}
