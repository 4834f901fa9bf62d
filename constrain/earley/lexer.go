package earley

import (
	"encoding/binary"
	"slices"

	"grove/constrain/regex"
)

// A pair is a lexeme and what is left of it.
type pair struct{ lexeme, rest regex.ID }

// A lexState is a set of lexemes that are being read. It does not change, besides what is kept by it.
type lexState struct {
	id     uint32
	pairs  []pair   // by lexeme; the rests are not empty
	accept *accepts // the lexemes that match; nil: none
	stops  tri      // no byte goes on

	class *[256]uint8 // of bytes with the same successor
	first []byte      // the smallest byte of each class
	next  []*lexState // successors by class; nil: not known; dead: none
	inner map[*region]*inner
	parts []*lexState // see Engine.partsOf
	clean *cleanStep
	near  *lexState // that no token can tell from it; nil: not known
}

// tri is a truth that may not be known yet.
type tri uint8

const (
	unknown tri = iota
	yes
	no
)

func triOf(b bool) tri {
	if b {
		return yes
	}
	return no
}

// dead is the successor where there is none.
var dead = &lexState{}

// accepts is a set of lexemes that match at the same byte.
type accepts struct {
	id      uint32
	lexemes []regex.ID // ascending
}

// take returns the state behind a byte, or nil.
func (e *Engine) take(q *lexState, b byte) *lexState {
	if q.class != nil {
		if n := q.next[q.class[b]]; n != nil {
			if n == dead {
				return nil
			}
			return n
		}
	}
	return e.derive(q, b)
}

// derive is take for a transition that is not known.
func (e *Engine) derive(q *lexState, b byte) *lexState {
	e.classes(q)
	e.pairs = e.pairs[:0]
	for _, p := range q.pairs {
		if rest := e.store.Derive(p.rest, b); rest != regex.Nothing {
			e.pairs = append(e.pairs, pair{p.lexeme, rest})
		}
	}
	n := e.lexState(e.pairs)
	if e.failed() {
		return nil
	}
	if n == nil {
		q.next[q.class[b]] = dead
		return nil
	}
	q.next[q.class[b]] = n
	return n
}

// classes makes room for the successors of a state.
func (e *Engine) classes(q *lexState) {
	if q.class != nil {
		return
	}
	e.rests = e.rests[:0]
	for _, p := range q.pairs {
		e.rests = append(e.rests, p.rest)
	}
	q.class, q.first = e.store.Classes(e.rests...)
	q.next = make([]*lexState, len(q.first))
	e.took(8 * len(q.next))
}

// lexState returns the state of pairs, which are in order and copied; nil for none.
func (e *Engine) lexState(pairs []pair) *lexState {
	if len(pairs) == 0 {
		return nil
	}
	key := e.key[:0]
	for _, p := range pairs {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.lexeme))
		key = binary.LittleEndian.AppendUint32(key, uint32(p.rest))
	}
	e.key = key
	if q, ok := e.lexStates[string(key)]; ok {
		return q
	}
	if e.lexed++; e.lexed > e.limits.LexerStates {
		e.fail(ErrLexer)
		return nil
	}
	e.ids++
	q := &lexState{id: e.ids, pairs: slices.Clone(pairs)}
	e.matched = e.matched[:0]
	for _, p := range pairs {
		if e.store.Nullable(p.rest) {
			e.matched = append(e.matched, p.lexeme)
		}
	}
	e.lexStates[string(key)] = q
	e.took(lexBytes + 2*len(key))
	q.accept = e.accepts(e.matched)
	return q
}

// accepts returns the set of lexemes, which are ascending and copied; nil for none.
func (e *Engine) accepts(lexemes []regex.ID) *accepts {
	if len(lexemes) == 0 {
		return nil
	}
	key := e.key[:0]
	for _, id := range lexemes {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	e.key = key
	a, ok := e.matches[string(key)]
	if !ok {
		e.ids++
		a = &accepts{e.ids, slices.Clone(lexemes)}
		e.matches[string(key)] = a
		e.took(setBytes + 2*len(key))
	}
	return a
}

// stopped reports whether no byte goes on from a state.
func (e *Engine) stopped(q *lexState) bool {
	if q.stops == unknown {
		e.classes(q)
		stops := true
		for i := 0; i < len(q.first) && stops; i++ {
			stops = e.take(q, q.first[i]) == nil
		}
		if e.failed() {
			return false
		}
		q.stops = triOf(stops)
	}
	return q.stops == yes
}
