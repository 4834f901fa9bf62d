package earley

import (
	"slices"

	"grove/sample/constrain/grammar"
	"grove/sample/constrain/regex"
)

// tables are what is kept to be used again. A call that finds them too large forgets them all.
type tables struct {
	epoch        uint32
	bytes        int // of all tables, about
	nodes        map[grammar.Node]*node
	rows         map[string]*row
	lexStates    map[string]*lexState
	matches      map[string]*accepts
	texts        map[textKey]*text
	greedyStates map[config]*state
	states       map[string]*state
	solo         map[soloKey]*inner // of states of the lexer with one pair, by what is left
	first        *state

	masked    []*state // with a mask
	maskBytes int
	clock     uint32
}

// scratch is memory that calls use in turn.
type scratch struct {
	key        []byte
	pairs      []pair
	matched    []regex.ID
	rests      []regex.ID
	few        []uint32
	core       []item
	configs    []config
	endings    []ending
	rowBuilder builder
	stack      []config
	stateStack []*state
	nearby     []config
}

// forget drops all that is kept. What states hold that a caller has is cut off from it; [Engine.renew] takes such states into
// the new tables.
func (e *Engine) forget() {
	for _, r := range e.rows {
		r.next, r.nextRead = nil, nil
	}
	for _, q := range e.lexStates {
		q.class, q.next, q.inner, q.clean, q.parts = nil, nil, nil, nil, nil
	}
	for _, p := range e.greedyStates {
		p.mask = nil
	}
	for _, p := range e.states {
		p.pages, p.mask = [4]*[64]*state{}, nil
	}
	e.tables = tables{
		epoch: e.epoch + 1, nodes: map[grammar.Node]*node{}, rows: map[string]*row{}, lexStates: map[string]*lexState{},
		matches: map[string]*accepts{}, texts: map[textKey]*text{}, greedyStates: map[config]*state{}, states: map[string]*state{},
		solo: map[soloKey]*inner{},
	}
	e.scratch.rowBuilder = builder{}
}

// renew returns a state of the present tables that is equal to p.
func (e *Engine) renew(p *state) *state {
	if p == nil || p.done || p.epoch == e.epoch {
		return p
	}
	configs := make([]config, 0, len(p.configs))
	for _, c := range p.configs {
		n := config{row: e.renewRow(c.row), fresh: c.fresh}
		if c.lex != nil {
			n.lex = e.lexState(c.lex.pairs)
		}
		for _, b := range c.text.bytes() {
			n.text = e.extend(n.text, b)
		}
		configs = append(configs, n)
	}
	if e.failed() {
		return nil
	}
	if e.greedy {
		return e.state(configs[0])
	}
	slices.SortFunc(configs, compareConfigs)
	return e.stateOf(configs, p.final == yes)
}

// renewRow returns the row of the present tables with the items of r.
func (e *Engine) renewRow(r *row) *row {
	b := e.builder()
	b.finished = r.finished
	for _, it := range r.core {
		b.add(it)
	}
	return e.build(b)
}

// keepMask keeps the mask of a state. Where that is too much, it drops the half of the masks that was not asked for longest.
func (e *Engine) keepMask(p *state, m Mask) {
	p.mask = m
	e.masked = append(e.masked, p)
	e.maskBytes += 8 * len(m)
	if e.maskBytes <= e.limits.MaskBytes {
		return
	}
	slices.SortFunc(e.masked, func(x, y *state) int { return int(int32(y.used - x.used)) })
	for _, old := range e.masked[len(e.masked)/2:] {
		if old != p {
			old.mask = nil
		}
	}
	e.masked = slices.DeleteFunc(e.masked, func(p *state) bool { return p.mask == nil })
	e.maskBytes = 8 * len(m) * len(e.masked)
}
