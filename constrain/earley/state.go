package earley

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A text is the bytes of a lexeme that is being read, the last one first. Equal texts are one.
type text struct {
	before *text
	last   byte
	id     uint32
	n      int
}

type textKey struct {
	before *text
	last   byte
}

// bytes returns the text as a new slice.
func (t *text) bytes() []byte {
	if t == nil {
		return nil
	}
	all := make([]byte, t.n)
	for ; t != nil; t = t.before {
		all[t.n-1] = t.last
	}
	return all
}

// extend returns a text with one more byte.
func (e *Engine) extend(t *text, b byte) *text {
	key := textKey{t, b}
	k, ok := e.texts[key]
	if !ok {
		e.ids++
		k = &text{before: t, last: b, id: e.ids, n: 1}
		if t != nil {
			k.n = t.n + 1
		}
		e.texts[key] = k
		e.took(textBytes)
	}
	return k
}

// A config is a row and what is read of its lexemes.
type config struct {
	row  *row
	lex  *lexState // nil: no lexeme may follow
	text *text     // of the lexeme, where the row behind it depends on it
	// fresh is set where no byte of a lexeme is read yet, in greedy grammars.
	fresh bool
}

// A state is all that may be read behind a text: of a greedy grammar one config, of others one for each row in whose lexemes
// the text may be, in order. It does not change, besides what is kept by it.
type state struct {
	epoch   uint32
	configs []config
	final   tri // the text may end here
	done    bool

	pages [4]*[64]*state // successors by byte, of grammars that are not greedy; nil: not known; deadState: none
	mask  Mask
	used  uint32 // when the mask was asked for
}

var deadState = &state{}

// start returns the state of the empty text.
func (e *Engine) start() *state {
	if e.first != nil {
		return e.first
	}
	b := e.builder()
	first := e.src.Start()
	b.add(item{first, first, e.top})
	r := e.build(b)
	if r == nil || e.failed() {
		return nil
	}
	c := config{row: r, lex: r.start, fresh: true}
	if e.greedy {
		e.first = e.state(c)
	} else {
		e.first = e.stateOf([]config{c}[:live(c)], r.complete)
	}
	return e.first
}

// live is 1 where a lexeme may follow, and 0 otherwise.
func live(c config) int {
	if c.lex == nil {
		return 0
	}
	return 1
}

// state returns the state of one config of a greedy grammar.
func (e *Engine) state(c config) *state {
	if !c.fresh && c.lex.accept != nil && e.stopped(c.lex) {
		if r := e.after(ending{c.row, c.lex.accept, c.text}); r != nil {
			c = config{row: r, lex: r.start, fresh: true}
		}
	}
	p, ok := e.greedyStates[c]
	if !ok {
		if e.failed() {
			return nil
		}
		p = &state{epoch: e.epoch, configs: []config{c}}
		e.greedyStates[c] = p
		e.took(stateBytes + 2*configBytes)
	}
	return p
}

// stateOf returns the state of configs, which are in order and copied, of a grammar that is not greedy.
func (e *Engine) stateOf(configs []config, final bool) *state {
	key := append(e.key[:0], byte(triOf(final)))
	for _, c := range configs {
		id := uint32(0)
		if c.text != nil {
			id = c.text.id
		}
		key = binary.LittleEndian.AppendUint32(key, c.row.id)
		key = binary.LittleEndian.AppendUint32(key, c.lex.id)
		key = binary.LittleEndian.AppendUint32(key, id)
	}
	e.key = key
	p, ok := e.states[string(key)]
	if !ok {
		p = &state{epoch: e.epoch, configs: slices.Clone(configs), final: triOf(final)}
		e.states[string(key)] = p
		e.took(stateBytes + len(key) + configBytes*len(configs))
	}
	return p
}

// step returns the config behind a byte in a greedy grammar.
func (e *Engine) step(c config, b byte) (config, bool) {
	if c.lex == nil {
		return c, false
	}
	if q := e.take(c.lex, b); q != nil {
		t := c.text
		if len(c.row.reads) > 0 {
			t = e.follow(c.row, q, t, c.fresh, b)
		}
		return config{row: c.row, lex: q, text: t}, true
	}
	if c.fresh || c.lex.accept == nil || e.failed() {
		return c, false
	}
	r := e.after(ending{c.row, c.lex.accept, c.text})
	if r == nil || r.start == nil {
		return c, false
	}
	q := e.take(r.start, b)
	if q == nil {
		return c, false
	}
	return config{row: r, lex: q, text: e.follow(r, q, nil, true, b)}, true
}

// follow returns the text behind a byte of a lexeme: none where it does not matter.
func (e *Engine) follow(r *row, q *lexState, t *text, fresh bool, b byte) *text {
	if t == nil && !fresh || len(r.reads) == 0 || !r.hasRead(q.pairs) {
		return nil
	}
	return e.extend(t, b)
}

// stepAll returns the state behind a byte in a grammar that is not greedy, or nil.
func (e *Engine) stepAll(p *state, b byte) *state {
	if page := p.pages[b>>6]; page != nil {
		if n := page[b&63]; n != nil {
			if n == deadState {
				return nil
			}
			return n
		}
	}
	n := e.makeAll(p, b)
	if e.failed() {
		return nil
	}
	if p.pages[b>>6] == nil {
		p.pages[b>>6] = new([64]*state)
		e.took(512)
	}
	p.pages[b>>6][b&63] = n
	if n == nil {
		p.pages[b>>6][b&63] = deadState
	}
	return n
}

// makeAll is stepAll for a successor that is not known.
func (e *Engine) makeAll(p *state, b byte) *state {
	configs, ends := e.configs[:0], e.endings[:0]
	for _, c := range p.configs {
		q := e.take(c.lex, b)
		if q == nil {
			continue
		}
		fresh := c.lex == c.row.start && c.text == nil
		t := e.follow(c.row, q, c.text, fresh, b)
		if q.accept != nil {
			ends = append(ends, ending{c.row, q.accept, t})
		}
		configs = append(configs, config{row: c.row, lex: q, text: t})
	}
	final := false
	var r *row
	switch len(ends) {
	case 0:
	case 1:
		r = e.after(ends[0])
	default:
		r = e.merge(ends)
	}
	if r != nil {
		final = r.complete
		if r.start != nil {
			configs = append(configs, config{row: r, lex: r.start})
		}
	}
	e.configs, e.endings = configs, ends
	if len(configs) == 0 && !final || e.failed() {
		return nil
	}
	return e.stateOf(e.unite(configs), final)
}

// unite sorts configs, and makes one of those with the same row where no text is kept.
func (e *Engine) unite(configs []config) []config {
	slices.SortFunc(configs, compareConfigs)
	kept := configs[:0]
	for _, c := range configs {
		n := len(kept) - 1
		switch {
		case n >= 0 && kept[n] == c:
		case n >= 0 && kept[n].row == c.row && kept[n].text == nil && c.text == nil && len(c.row.reads) == 0:
			kept[n].lex = e.union(kept[n].lex, c.lex)
		default:
			kept = append(kept, c)
		}
	}
	return kept
}

// union returns the state of the pairs of two.
func (e *Engine) union(p, q *lexState) *lexState {
	all := append(append(e.pairs[:0], p.pairs...), q.pairs...)
	slices.SortFunc(all, func(x, y pair) int {
		if c := cmp.Compare(x.lexeme, y.lexeme); c != 0 {
			return c
		}
		return cmp.Compare(x.rest, y.rest)
	})
	all = slices.Compact(all)
	e.pairs = all
	return e.lexState(all)
}

func compareConfigs(x, y config) int {
	if c := cmp.Compare(x.row.id, y.row.id); c != 0 {
		return c
	}
	if c := cmp.Compare(x.text.number(), y.text.number()); c != 0 {
		return c
	}
	return cmp.Compare(x.lex.id, y.lex.id)
}

func (t *text) number() uint32 {
	if t == nil {
		return 0
	}
	return t.id
}

// push returns the state behind as many bytes of a text as may follow, and their number; nil on errors. Budgets are those of a
// byte, not of the text.
func (e *Engine) push(p *state, text []byte) (*state, int) {
	if p == nil || e.failed() {
		return nil, 0
	}
	if p.done {
		return p, 0
	}
	if !e.greedy {
		for i, b := range text {
			e.items, e.lexed, e.work = 0, 0, 0
			next := e.stepAll(p, b)
			if next == nil {
				return p, i
			}
			p = next
		}
		return p, len(text)
	}
	c, n := p.configs[0], 0
	for ; n < len(text); n++ {
		e.items, e.lexed, e.work = 0, 0, 0
		next, ok := e.step(c, text[n])
		if !ok {
			break
		}
		c = next
	}
	if n == 0 {
		return p, 0
	}
	return e.state(c), n
}

// ends reports whether the text may end at a state.
func (e *Engine) ends(p *state) bool {
	if p == nil || e.failed() {
		return false
	}
	if p.done {
		return true
	}
	if p.final == unknown {
		c := p.configs[0]
		r := c.row
		if !c.fresh {
			r = nil
			if c.lex.accept != nil {
				r = e.after(ending{c.row, c.lex.accept, c.text})
			}
		}
		if e.failed() {
			return false
		}
		p.final = triOf(r != nil && r.complete)
	}
	return p.final == yes
}
