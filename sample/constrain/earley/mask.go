package earley

import (
	"math/bits"

	"grove/sample/constrain/vocab"
	"grove/text/token"
)

// inner is what a state of the lexer alone says of the tokens.
type inner struct {
	few   []uint32 // the tokens that stay within the lexemes, where they are few; or
	many  []uint64 // the bitset of them
	trie  vocab.Trie
	exits []exits
}

// exits are the nodes at which the lexer cannot go on, behind places where the same lexemes end.
type exits struct {
	accept *accepts // nil: all that the state of the lexer has
	nodes  []uint32
}

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
	m := make(Mask, e.vocab.Words())
	switch {
	case p.done:
	case e.greedy:
		e.maskGreedy(m, p.configs[0])
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

// maskGreedy sets the tokens behind a config of a greedy grammar.
func (e *Engine) maskGreedy(m Mask, c config) {
	if c.lex == nil {
		return
	}
	in := e.inside(c.lex)
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
		e.exit(m, in.trie, c, accept, x.nodes)
	}
}

// only returns the set of the lexeme of a state with one.
func (e *Engine) only(q *lexState) *accepts {
	e.matched = append(e.matched[:0], q.pairs[0].lexeme)
	return e.accepts(e.matched)
}

// exit goes on with the rows behind lexemes that end before nodes of the trie.
func (e *Engine) exit(m Mask, t vocab.Trie, c config, accept *accepts, nodes []uint32) {
	if len(c.row.reads) > 0 && c.row.hasRead(c.lex.pairs) {
		e.exitText(m, t, c, accept, nodes)
		return
	}
	r := e.after(ending{c.row, accept, nil})
	if r == nil || r.start == nil {
		return
	}
	for _, i := range nodes {
		if e.take(r.start, t[i].Byte()) != nil {
			e.walk(m, t, int(i), config{row: r, lex: r.start, fresh: true})
		}
	}
}

// exitText is exit where the row behind a lexeme depends on its text.
func (e *Engine) exitText(m Mask, t vocab.Trie, c config, accept *accepts, nodes []uint32) {
	for _, i := range nodes {
		at := c
		for _, b := range e.path(t, int(i)) {
			next, ok := e.step(at, b)
			if !ok {
				return // an error
			}
			at = next
		}
		r := e.after(ending{at.row, accept, at.text})
		if r != nil && r.start != nil && e.take(r.start, t[i].Byte()) != nil {
			e.walk(m, t, int(i), config{row: r, lex: r.start, fresh: true})
		}
		if e.failed() {
			return
		}
	}
}

// path returns the bytes before a node of the trie.
func (e *Engine) path(t vocab.Trie, i int) []byte {
	n := t[i].Depth() - 1
	for t[i].Token() == vocab.None {
		i++
	}
	return e.vocab.Bytes(token.ID(t[i].Token()))[:n]
}

// walk sets the tokens of the subtree of a node that a greedy grammar allows behind the config before the node.
func (e *Engine) walk(m Mask, t vocab.Trie, node int, c config) {
	e.stack[t[node].Depth()-1] = c
	end := node + t[node].Size()
	for i := node; i < end; {
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

// inside returns what a state of the lexer of a greedy grammar says alone; nil on errors.
func (e *Engine) inside(q *lexState) *inner {
	if q.inner != nil {
		return q.inner
	}
	solo := len(q.pairs) == 1
	if solo {
		q.inner = e.solo[q.pairs[0].rest]
	}
	if q.inner == nil {
		in := e.makeInside(q, solo)
		if e.failed() {
			return nil
		}
		q.inner = in
		if solo {
			e.solo[q.pairs[0].rest] = in
		}
	}
	return q.inner
}

func (e *Engine) makeInside(q *lexState, solo bool) *inner {
	in := &inner{many: make([]uint64, e.vocab.Words())}
	in.trie = e.slices(q, in.many)
	for i := 1; i < len(in.trie); {
		n := in.trie[i]
		d := n.Depth()
		from := q
		if d > 1 {
			from = e.stack[d-1].lex
		}
		next := e.take(from, n.Byte())
		if next == nil {
			if e.failed() {
				return nil
			}
			if from.accept != nil {
				in.exit(from.accept, solo, i)
			}
			i += n.Size()
			continue
		}
		e.stack[d].lex = next
		if id := n.Token(); id != vocab.None {
			in.many[id>>6] |= 1 << (id & 63)
		}
		i++
	}
	e.bytes += 64 + in.pack()
	return in
}

// exit notes a node before which lexemes end.
func (in *inner) exit(accept *accepts, solo bool, node int) {
	if solo {
		accept = nil
	}
	for i := range in.exits {
		if in.exits[i].accept == accept {
			in.exits[i].nodes = append(in.exits[i].nodes, uint32(node))
			return
		}
	}
	in.exits = append(in.exits, exits{accept, []uint32{uint32(node)}})
}

// pack makes a list of a bitset with few tokens, and returns the memory of the result in bytes.
func (in *inner) pack() int {
	n := 0
	for _, w := range in.many {
		n += bits.OnesCount64(w)
	}
	size := 8 * len(in.many)
	if 4*n < size {
		in.few = make([]uint32, 0, n)
		for i, w := range in.many {
			for ; w != 0; w &= w - 1 {
				in.few = append(in.few, uint32(i<<6+bits.TrailingZeros64(w)))
			}
		}
		in.many, size = nil, 4*n
	}
	for _, x := range in.exits {
		size += 32 + 4*len(x.nodes)
	}
	return size
}

// slices sets the tokens of clean text that a state of the lexer allows whatever they are, and returns a trie of the others.
func (e *Engine) slices(q *lexState, m []uint64) vocab.Trie {
	if e.noSlices {
		return e.vocab.Trie()
	}
	n, exact := e.cleanDepth(q)
	level, t := e.vocab.Rest(n)
	if exact && n <= vocab.Levels {
		level = n
		_, t = e.vocab.Rest(vocab.Levels + 1)
	}
	if level > 0 {
		for i, w := range e.vocab.Clean(level) {
			m[i] |= w
		}
	}
	return t
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
	for i := 1; i < len(t); {
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
