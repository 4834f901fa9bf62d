package earley

import (
	"cmp"
	"slices"
)

// near returns a state that has the mask of p. States that differ only in how much may still be repeated, and in more than the
// longest token can tell, have the same one: the places of a long string of limited length share their masks.
func (e *Engine) near(p *state) *state {
	configs, same := e.nearby[:0], true
	for _, c := range p.configs {
		if c.lex != nil {
			q := e.nearLex(c.lex)
			same = same && q == c.lex
			c.lex = q
		}
		configs = append(configs, c)
	}
	e.nearby = configs
	switch {
	case same || e.failed():
		return p
	case e.greedy:
		return e.state(configs[0])
	}
	return e.stateOf(e.unite(configs), p.final == yes)
}

// nearLex returns a state of the lexer that no token can tell from q.
func (e *Engine) nearLex(q *lexState) *lexState {
	if q.near == nil {
		pairs := e.pairs[:0]
		for _, p := range q.pairs {
			pairs = append(pairs, pair{p.lexeme, e.store.Local(p.rest, max(e.vocab.Longest(), 1))})
		}
		slices.SortFunc(pairs, func(x, y pair) int {
			return cmp.Or(cmp.Compare(x.lexeme, y.lexeme), cmp.Compare(x.rest, y.rest))
		})
		e.pairs = slices.Compact(pairs)
		near := e.lexState(e.pairs)
		if e.failed() {
			return q
		}
		q.near = near
	}
	return q.near
}
