package earley

import (
	"slices"

	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// inner is what a state of the lexer alone says of the tokens of a region.
type inner struct {
	few   []uint32 // the tokens that stay within the lexemes
	many  []uint64 // a bitset of them, besides the list
	exits []*region
}

// A region is a set of subtrees of a trie, before which lexemes end that cannot go on there.
type region struct {
	accept *accepts // the lexemes; nil: all that the state of the lexer has
	trie   vocab.Trie
	nodes  []uint32
	starts []uint16 // of each node: the bytes of the token before the lexeme
	size   int      // nodes of all subtrees
}

// soloKey is what the inner of a state of the lexer with one pair depends on.
type soloKey struct {
	rest   regex.ID
	region *region
}

// inside returns what a state of the lexer of a greedy grammar says alone of the tokens of a region that begins there; nil: of all
// tokens. The result is nil on errors.
func (e *Engine) inside(q *lexState, g *region) *inner {
	if in, ok := q.inner[g]; ok {
		return in
	}
	var in *inner
	key := soloKey{q.pairs[0].rest, g}
	if len(q.pairs) == 1 {
		in = e.solo[key]
	}
	if in == nil {
		if parts := e.partsOf(q); len(parts) > 1 {
			in = e.join(q, parts, g)
		} else {
			in = e.read(q, g)
		}
		if e.failed() {
			return nil
		}
		e.took(innerBytes + in.memory())
		if len(q.pairs) == 1 {
			e.solo[key] = in
		}
	}
	if q.inner == nil {
		q.inner = map[*region]*inner{}
		e.took(mapBytes)
	}
	q.inner[g] = in
	return in
}

// Bounds of the parts of a state of the lexer.
const (
	shortLexeme = 32 // bytes up to which lexemes are read together: walks of longer ones are long, and are shared
	maxParts    = 24 // beyond them all lexemes are read together
)

// partsOf returns the states of the lexer into which a state is divided, so that those parts that are costly to read and stand in
// many states are read once: each pair of which much may be left, and all others together.
func (e *Engine) partsOf(q *lexState) []*lexState {
	if q.parts != nil {
		return q.parts
	}
	var short []pair
	var parts []*lexState
	for i, p := range q.pairs {
		if e.store.Longest(p.rest) <= shortLexeme {
			short = append(short, p)
		} else {
			parts = append(parts, e.lexState(q.pairs[i:i+1]))
		}
	}
	if len(short) > 0 {
		parts = append(parts, e.lexState(short))
	}
	if len(parts) > maxParts {
		parts = []*lexState{q}
	}
	if e.failed() {
		return nil
	}
	q.parts = parts
	e.took(8 * len(parts))
	return parts
}

// read walks over the tokens of a region.
func (e *Engine) read(q *lexState, g *region) *inner {
	in := &inner{few: e.few[:0]}
	if g == nil {
		level, t := e.slices(q)
		if level > 0 {
			in.many = slices.Clone(e.vocab.Clean(level))
		}
		e.stack[0].lex = q
		e.fill(in, t, 1, len(t), 0, len(q.pairs) == 1)
	} else {
		for _, n := range g.nodes {
			d := g.trie[n].Depth() - 1
			e.stack[d].lex = q
			e.fill(in, g.trie, int(n), int(n)+g.trie[n].Size(), d, len(q.pairs) == 1)
		}
	}
	e.few = in.few[:0]
	in.few = slices.Clone(in.few)
	return in
}

// fill walks over nodes of a trie from a lexeme's beginning on.
func (e *Engine) fill(in *inner, t vocab.Trie, node, end, start int, solo bool) {
	for node < end && e.visit() {
		n := t[node]
		d := n.Depth()
		from := e.stack[d-1].lex
		next := e.take(from, n.Byte())
		if next == nil {
			if e.failed() {
				return
			}
			if accept := from.accept; accept != nil {
				if solo {
					accept = nil
				}
				in.exit(accept, t, node, start)
			}
			node += n.Size()
			continue
		}
		e.stack[d].lex = next
		if id := n.Token(); id != vocab.None {
			e.addToken(in, id)
		}
		node++
	}
}

// join makes the inner of a state of the lexer from those of its parts: a token stays within the lexemes if it does within those of
// a part; and lexemes end where no part goes on.
func (e *Engine) join(q *lexState, parts []*lexState, g *region) *inner {
	in := &inner{}
	var found []*inner
	for _, part := range parts {
		x := e.inside(part, g)
		if x == nil {
			return in
		}
		found = append(found, x)
	}
	for k, x := range found {
		for _, id := range x.few {
			e.addToken(in, id)
		}
		if x.many != nil {
			e.spill(in)
			for i, w := range x.many {
				in.many[i] |= w
			}
		}
		for _, out := range x.exits {
			for j := range out.nodes {
				e.joinExit(in, q, parts[k], out, j)
			}
		}
	}
	return in
}

// joinExit notes a node before which lexemes of a part end, if no other part goes on there; once for all parts.
func (e *Engine) joinExit(in *inner, q, part *lexState, out *region, j int) {
	node := int(out.nodes[j])
	for _, b := range e.path(out, j) {
		if q = e.take(q, b); q == nil {
			return // an error
		}
	}
	if e.take(q, out.trie[node].Byte()) != nil || q.accept == nil {
		return
	}
	for _, p := range part.pairs {
		if p.lexeme == q.accept.lexemes[0] {
			in.exit(q.accept, out.trie, node, int(out.starts[j]))
		}
	}
}

// path returns the bytes of the lexeme before a node of a region.
func (e *Engine) path(x *region, j int) []byte {
	i := int(x.nodes[j])
	end := x.trie[i].Depth() - 1
	for x.trie[i].Token() == vocab.None {
		i++
	}
	return e.vocab.Bytes(token.ID(x.trie[i].Token()))[x.starts[j]:end]
}

// exit notes a node before which lexemes end.
func (in *inner) exit(accept *accepts, t vocab.Trie, node, start int) {
	var x *region
	for _, known := range in.exits {
		if known.accept == accept && &known.trie[0] == &t[0] {
			x = known
		}
	}
	if x == nil {
		x = &region{accept: accept, trie: t}
		in.exits = append(in.exits, x)
	}
	x.nodes = append(x.nodes, uint32(node))
	x.starts = append(x.starts, uint16(start))
	x.size += t[node].Size()
}

// addToken adds a token: to the list, or to the bitset where the list would be longer.
func (e *Engine) addToken(in *inner, id uint32) {
	if in.many == nil {
		if in.few = append(in.few, id); len(in.few) > e.vocab.Words() {
			e.spill(in)
		}
		return
	}
	in.many[id>>6] |= 1 << (id & 63)
}

// spill makes a bitset of the list.
func (e *Engine) spill(in *inner) {
	if in.many == nil {
		in.many = make([]uint64, e.vocab.Words())
	}
	for _, id := range in.few {
		in.many[id>>6] |= 1 << (id & 63)
	}
	in.few = in.few[:0]
}

// memory returns the memory of an inner in bytes, about.
func (in *inner) memory() int {
	size := 4*len(in.few) + 8*len(in.many)
	for _, x := range in.exits {
		size += 96 + 6*len(x.nodes)
	}
	return size
}
