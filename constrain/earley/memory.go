package earley

import (
	"slices"

	"grove/constrain/grammar"
	"grove/constrain/regex"
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

// callBytes is how much a call may keep beyond Limits.Bytes.
const callBytes = 20 << 20

// countEvery is how often calls find what they hold: counting takes longer than a short call.
const countEvery = 64

// The memory of what the tables hold, in bytes, about: entries of maps as those are two thirds full.
const (
	nodeBytes   = 64        // of a node, beside its edges
	edgeBytes   = 24        // of an edge
	readBytes   = 64        // of what an edge reads texts with
	rowBytes    = 200       // of a row, beside its parts and its name
	coreBytes   = 16        // of an item
	waitBytes   = 32        // of a waiting or a scan
	afterBytes  = 28        // of a successor of a row
	lexBytes    = 216       // of a state of the lexer, beside its pairs and its name
	setBytes    = 96        // of a set of lexemes, beside its name
	textBytes   = 80        // of a text
	stateBytes  = 168       // of a state, beside its configs and its name
	configBytes = 32        // of a config
	innerBytes  = 136       // of an inner, beside its parts
	mapBytes    = 240       // of a small map
	fixedBytes  = 128 << 10 // of scratch
)

// Held returns the memory of the engine in bytes, about: of all that it keeps, its store and its grammar, where that says how much it
// has. While a call is under way it is what the last one found, so that nobody waits.
func (e *Engine) Held() int {
	if e.mu.TryLock() {
		e.count()
		e.mu.Unlock()
	}
	return int(e.held.Load())
}

// count finds what Held returns.
func (e *Engine) count() {
	e.stays = e.lasting()
	e.held.Store(int64(fixedBytes + e.bytes + e.maskBytes + 8*cap(e.masked) + e.stays))
}

// lasting returns the memory in bytes, about, of what is never dropped.
func (e *Engine) lasting() int {
	n := e.store.Held()
	if src, ok := e.src.(interface{ Held() int }); ok {
		n += src.Held()
	}
	return n
}

// took counts memory of the tables in bytes.
func (e *Engine) took(n int) {
	if e.bytes += n; e.bytes > e.limits.Bytes+callBytes {
		e.fail(ErrMemory)
	}
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
