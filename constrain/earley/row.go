package earley

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"sort"

	"grove/constrain/grammar"
	"grove/constrain/regex"
)

// An item is a place in a rule that began at a row. When the rule ends, the calls of rule ret that wait in that row go on: ret
// is the rule itself, or one that called it as its last part.
type item struct {
	node, ret grammar.Node
	origin    *row // nil: the row of the item
}

// A waiting is a call that waits for the end of a rule.
type waiting struct {
	call grammar.Node
	item // where it goes on
}

// A scan is an item that waits for a lexeme.
type scan struct {
	lexeme regex.ID
	read   func([]byte) (grammar.Node, error)
	item   // where it goes on
}

// A row is a set of items. It does not change, besides the successors that are kept by it.
type row struct {
	id       uint32
	core     []item // from which the others follow: in order, no origin is nil
	finished bool   // the core includes the end of the text
	complete bool   // the text may end
	waits    []waiting
	scans    []scan // by lexeme
	reads    []regex.ID
	start    *lexState // nil: no lexeme may follow

	next     map[uint32]*row // by set of lexemes; nil: none
	nextRead map[readKey]*row
}

type readKey struct {
	accept uint32
	text   *text
}

// An ending is a row whose lexemes end.
type ending struct {
	row    *row
	accept *accepts
	text   *text
}

// hasRead reports whether a lexeme of the state is one whose text matters behind the row.
func (r *row) hasRead(pairs []pair) bool {
	for _, id := range r.reads {
		for _, p := range pairs {
			if p.lexeme == id {
				return true
			}
		}
	}
	return false
}

// after returns the row behind lexemes that end at the same byte, or nil where there is none.
func (e *Engine) after(end ending) *row {
	r := end.row
	if end.text != nil {
		if next, ok := r.nextRead[readKey{end.accept.id, end.text}]; ok {
			return next
		}
	} else if next, ok := r.next[end.accept.id]; ok {
		return next
	}
	next := e.merge([]ending{end})
	if e.failed() {
		return nil
	}
	e.took(afterBytes)
	if end.text != nil {
		if r.nextRead == nil {
			r.nextRead = map[readKey]*row{}
			e.took(mapBytes)
		}
		r.nextRead[readKey{end.accept.id, end.text}] = next
		return next
	}
	if r.next == nil {
		r.next = map[uint32]*row{}
		e.took(mapBytes)
	}
	r.next[end.accept.id] = next
	return next
}

// merge returns the row behind lexemes that end at the same byte, in any rows, or nil where there is none.
func (e *Engine) merge(ends []ending) *row {
	b := e.builder()
	for _, end := range ends {
		for _, lexeme := range end.accept.lexemes {
			if lexeme == e.ignored {
				b.finished = b.finished || end.row.finished
				for _, it := range end.row.core {
					b.add(it)
				}
			}
			e.scan(b, end, lexeme)
		}
	}
	return e.build(b)
}

// scan adds the items behind a lexeme.
func (e *Engine) scan(b *builder, end ending, lexeme regex.ID) {
	r := end.row
	i := sort.Search(len(r.scans), func(i int) bool { return r.scans[i].lexeme >= lexeme })
	for ; i < len(r.scans) && r.scans[i].lexeme == lexeme; i++ {
		it := r.scans[i].item
		if it.origin == nil {
			it.origin = r
		}
		if read := r.scans[i].read; read != nil {
			node, err := read(end.text.bytes())
			if errors.Is(err, grammar.ErrRefused) {
				continue
			}
			if err != nil {
				e.fail(err)
				return
			}
			it.node = node
		}
		b.add(it)
	}
}

// Bounds beside those of [Limits].
const (
	edgesPerItem = 16 // edges of a row, for each item that it may have
	workPerItem  = 20 // steps of a call, for each item that its rows may have
	maxTails     = 64 // calls of the core that are looked at for whether they end their rules
)

// spend counts steps of a call.
func (e *Engine) spend(n int) {
	if e.work += n; e.work > workPerItem*e.limits.CallItems {
		e.fail(ErrItems)
	}
}

// A builder makes one row.
type builder struct {
	e        *Engine
	items    []item
	seen     map[item]struct{}
	tails    map[grammar.Node]int // calls of a rule as the last part of another, in the core
	finished bool
}

func (e *Engine) builder() *builder {
	b := &e.rowBuilder
	b.e, b.items, b.finished = e, b.items[:0], false
	clear(b.seen)
	if b.seen == nil || len(b.seen) > 4096 {
		b.seen, b.tails = map[item]struct{}{}, map[grammar.Node]int{}
	}
	return b
}

// add puts an item into the row, once.
func (b *builder) add(it item) {
	b.e.spend(1)
	if _, ok := b.seen[it]; ok {
		return
	}
	b.e.items++
	if len(b.items) >= b.e.limits.RowItems {
		b.e.fail(ErrRow)
		return
	}
	if b.e.items > b.e.limits.CallItems {
		b.e.fail(ErrItems)
		return
	}
	b.seen[it] = struct{}{}
	b.items = append(b.items, it)
}

// finish ends the rule of an item at the row: the calls that wait for it go on.
func (b *builder) finish(it item) {
	if it.origin == b.e.top {
		b.finished = true
		return
	}
	waits := it.origin.waits
	i := sort.Search(len(waits), func(i int) bool { return waits[i].call >= it.ret })
	for ; i < len(waits) && waits[i].call == it.ret; i++ {
		next := waits[i].item
		if next.origin == nil {
			next.origin = it.origin
		}
		b.add(next)
	}
}

// build returns the row of the items of b, or nil where there are none.
func (e *Engine) build(b *builder) *row {
	core := e.core[:0]
	for i := 0; i < len(b.items) && !e.failed(); i++ {
		it := b.items[i]
		n := e.node(it.node)
		if n.final {
			b.finish(it)
		}
		if len(n.edges) > 0 {
			core = append(core, it)
		}
	}
	e.core = core
	if e.failed() || len(core) == 0 && !b.finished {
		return nil
	}
	slices.SortFunc(core, compareItems)
	key := e.key[:0]
	key = append(key, byte(triOf(b.finished)))
	for _, it := range core {
		key = binary.LittleEndian.AppendUint32(key, uint32(it.node))
		key = binary.LittleEndian.AppendUint32(key, uint32(it.ret))
		key = binary.LittleEndian.AppendUint32(key, it.origin.id)
	}
	e.key = key
	if r, ok := e.rows[string(key)]; ok {
		return r
	}
	e.ids++
	r := &row{id: e.ids, core: slices.Clone(core), finished: b.finished}
	name := string(key)
	e.close(b, r)
	if e.failed() {
		return nil
	}
	e.rows[name] = r
	e.took(rowBytes + len(name) + coreBytes*len(r.core) + waitBytes*(cap(r.waits)+cap(r.scans)) + 4*cap(r.reads))
	return r
}

func compareItems(x, y item) int {
	if c := cmp.Compare(x.node, y.node); c != 0 {
		return c
	}
	if c := cmp.Compare(x.ret, y.ret); c != 0 {
		return c
	}
	return cmp.Compare(x.origin.number(), y.origin.number())
}

func (r *row) number() uint32 {
	if r == nil {
		return 0
	}
	return r.id
}

// close finds the items that follow from the core, and what they wait for.
func (e *Engine) close(b *builder, r *row) {
	b.items = b.items[:0]
	clear(b.seen)
	clear(b.tails)
	for _, it := range r.core {
		b.add(it)
	}
	b.findTails(r.core)
	for i := 0; i < len(b.items) && !e.failed(); i++ {
		it := b.items[i]
		n := e.node(it.node)
		e.spend(len(n.edges))
		if limit := edgesPerItem * e.limits.RowItems; len(r.scans)+len(r.waits) > limit {
			if r.compact(); len(r.scans)+len(r.waits) > limit/2 {
				e.fail(ErrRow)
			}
		}
		if n.final && it.origin != nil { // what begins and ends here was stepped over by its callers
			b.finish(it)
		}
		for _, edge := range n.edges {
			to := item{edge.To, it.ret, it.origin}
			if edge.Lexeme != regex.Nothing {
				r.scans = append(r.scans, scan{edge.Lexeme, edge.Read, to})
				continue
			}
			e.call(b, r, edge.Call, to)
		}
	}
	r.complete = b.finished
	r.compact()
	e.open(r)
}

// compact sorts what the items wait for, each once.
func (r *row) compact() {
	slices.SortFunc(r.waits, func(x, y waiting) int {
		return cmp.Or(cmp.Compare(x.call, y.call), compareItems(x.item, y.item))
	})
	r.waits = slices.Compact(r.waits)
	slices.SortFunc(r.scans, func(x, y scan) int {
		return cmp.Or(cmp.Compare(x.lexeme, y.lexeme), compareItems(x.item, y.item))
	})
	r.scans = slices.CompactFunc(r.scans, func(x, y scan) bool {
		return x.lexeme == y.lexeme && x.item == y.item && x.read == nil && y.read == nil
	})
}

// findTails counts the calls by which items of the core end their rules; none where that would be many calls.
func (b *builder) findTails(core []item) {
	calls := 0
	for _, it := range core {
		for _, edge := range b.e.node(it.node).edges {
			if edge.Lexeme != regex.Nothing {
				continue
			}
			if calls++; calls > maxTails {
				clear(b.tails)
				return
			}
			if b.e.last(edge.To) {
				b.tails[edge.Call]++
			}
		}
	}
}

// last reports whether a rule ends at a node, and does not go on. It does not unfold nodes that are not final.
func (e *Engine) last(n grammar.Node) bool {
	if _, ok := e.nodes[n]; !ok && !e.src.Final(n) {
		return false
	}
	k := e.node(n)
	return k.final && len(k.edges) == 0
}

// call adds a call of a rule, behind which to goes on. A call that is the last part of its rule returns where that rule does;
// not where several rules end so, which would need the items of the called rule once for each.
func (e *Engine) call(b *builder, r *row, rule grammar.Node, to item) {
	if to.origin != nil && b.tails[rule] == 1 && e.last(to.node) {
		b.add(item{rule, to.ret, to.origin})
		return
	}
	r.waits = append(r.waits, waiting{rule, to})
	b.add(item{rule, rule, nil})
	if e.nullable(rule) {
		b.add(to)
	}
}

// open makes the state of the lexer at which a row's lexemes begin.
func (e *Engine) open(r *row) {
	pairs := e.pairs[:0]
	for _, s := range r.scans {
		if n := len(pairs); n == 0 || pairs[n-1].lexeme != s.lexeme {
			pairs = append(pairs, pair{s.lexeme, s.lexeme})
		}
		if n := len(r.reads); s.read != nil && (n == 0 || r.reads[n-1] != s.lexeme) {
			r.reads = append(r.reads, s.lexeme)
		}
	}
	if e.ignored != regex.Nothing {
		p := pair{e.ignored, e.ignored}
		i, ok := slices.BinarySearchFunc(pairs, p, func(x, y pair) int { return cmp.Compare(x.lexeme, y.lexeme) })
		if !ok {
			pairs = slices.Insert(pairs, i, p)
		}
	}
	e.pairs = pairs
	r.start = e.lexState(pairs)
}
