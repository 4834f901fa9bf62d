// lowrank.go adds what the adapters of a step's rows give to products with matrices (Hu et al. 2021, LoRA, section 4.1).
//
// The order of arithmetic: u = Ax and v = Bu by N1, in the types of A and B, which are floats; then, for each adapter of the row's
// set in turn, y = FMA32(scale, v, y) behind the bias. A multiplies the activations as they are, also where the matrix multiplies
// rounded ones. scale is the pair's times the set's, rounded.
//
// The threads that multiply by the matrices do all of it on the way: one that begins an item takes a product with A that nobody has
// begun, and one that has computed outputs waits until these products are done, before it adds what B makes of them.

package compute

import (
	"runtime"
	"sort"
	"sync/atomic"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
)

// Adapted is an adapter with the scale that a set of adapters gives it.
type Adapted struct {
	Adapter *weight.Adapter
	Scale   float32
}

// AdapterRows is a buffer of width values for each row.
type AdapterRows struct {
	F     []float32
	Width int
	ID    int // names the content
}

func (r *AdapterRows) row(i int) []float32 { return r.F[i*r.Width : (i+1)*r.Width] }

const (
	// cellRows is the most rows of a cell: their products with B are in a cache when they are added.
	cellRows = 32
	// itemGroups is the most groups of outputs of an item of products with B.
	itemGroups = 64
	// lookBack bounds how far [Additions.same] and [Additions.product] look.
	lookBack = 96
	// productGroups is the most groups of outputs of a product with As: as many as a tile of one row takes at once. More are
	// shared out among the threads.
	productGroups = 4
)

// Additions holds the products that the adapters of a step's rows add. Rows of a buffer that follow each other and have the same set share products.
// Where no row of the step has a set, nothing is done. It is for one step at a time.
type Additions struct {
	On bool // a row of the step has a set

	sets    [][]Adapted // by number, less one
	scratch []matmul.Scratch
	of      []int32 // the set of each row of the present buffers
	pairs   []int32 // the same of pairs of a row and an expert
	rows    []kernel.Rows
	up      [][]float32 // by worker

	cells    []cell
	lows     []low
	products []lowrankProduct
	items    int       // of the products with B of pairs of a row and an expert
	low      []float32 // results of the products with A

	begun, left atomic.Int32 // products that a thread has begun, and that are not done
}

// AdapterCells are the cells of one product.
type AdapterCells struct{ First, N int }

// cell is some rows of the results of a product, all with the same set.
type cell struct {
	dst         AdapterRows
	first, end  int // rows
	expert      int
	lows, limit int // its products with A
	item        int // the first of its items
}

// low is the product of a cell's rows with the A of one adapter.
type low struct {
	pair  *weight.Pair
	scale float32
	in    AdapterRows
	cell  int
	at    int // of its results
	group int // the first of its A in the matrix of the product
	next  int // the low behind it in its product
}

// lowrankProduct multiplies the rows of a cell by some groups of outputs of As that lie side by side: those of the lows from first to last.
type lowrankProduct struct {
	m           *weight.Matrix // that holds the As
	first, last int            // lows
	from, to    int            // groups
}

// Set makes n, which is 1 or more, the number of a set of adapters.
func (t *Additions) Set(n int, set []Adapted) {
	for len(t.sets) < n {
		t.sets = append(t.sets, nil)
	}
	t.sets[n-1] = set
}

// Begin looks for adapters among the rows of a step. scratch is that of each worker.
func (t *Additions) Begin(rows []forest.Placed, scratch []matmul.Scratch) {
	t.On = false
	for i := range rows {
		t.On = t.On || rows[i].Adapter != 0
	}
	t.scratch = scratch
	for t.On && len(t.up) < len(scratch) {
		t.up, t.rows = append(t.up, nil), append(t.rows, kernel.Rows{})
	}
}

// Group notes the sets of those rows of the step that the next buffers hold.
func (t *Additions) Group(rows []forest.Placed, active []int32) {
	if !t.On {
		return
	}
	t.of = grown(t.of, len(active))
	for i, r := range active {
		t.of[i] = int32(rows[r].Adapter)
	}
}

// Touch reports whether an adapter of a row of the present buffers adds to the products of a matrix.
func (t *Additions) Touch(m *weight.Matrix) bool {
	if !t.On || m.Number() == 0 {
		return false
	}
	last := int32(0)
	for _, n := range t.of {
		if n != last && n != 0 {
			for _, a := range t.sets[n-1] {
				if a.Adapter.Pair(m.Number()) != nil {
					return true
				}
			}
		}
		last = n
	}
	return false
}

// Clear forgets the products that were added.
func (t *Additions) Clear() {
	t.cells, t.lows, t.products, t.items, t.low = t.cells[:0], t.lows[:0], t.products[:0], 0, t.low[:0]
}

// Ready is called when all products are added, before any thread calls Lower.
func (t *Additions) Ready() {
	t.begun.Store(0)
	t.left.Store(int32(len(t.products)))
}

// Add adds the products of the first n rows of in with a matrix, and returns their cells.
func (t *Additions) Add(m *weight.Matrix, in, dst AdapterRows, n int) AdapterCells {
	first := len(t.cells)
	if m.Number() != 0 {
		t.add(m, in, dst, 0, 0, n, t.of)
	}
	return AdapterCells{first, len(t.cells) - first}
}

// Experts computes and adds those of pairs of a row and an expert: source has the row of each pair, and the pairs of each busy expert
// lie between two values of start.
func (t *Additions) Experts(m *weight.Matrix, in, dst AdapterRows, source, busy, start []int32, pool *par.Pool) {
	t.Clear()
	t.pairs = grown(t.pairs, len(source))
	for p, r := range source {
		t.pairs[p] = t.of[r]
	}
	for _, e := range busy {
		t.add(m, in, dst, int(e), int(start[e]), int(start[e+1]), t.pairs)
	}
	t.Ready()
	if t.items > 0 {
		pool.Run(t.items, t)
	}
}

// add adds cells for the rows [first, end), which are an expert's. of has the set of each row.
func (t *Additions) add(m *weight.Matrix, in, dst AdapterRows, expert, first, end int, of []int32) {
	for first < end {
		n := of[first]
		next := first + 1
		for next < end && next-first < cellRows && of[next] == n {
			next++
		}
		if n != 0 {
			t.addCell(m, in, cell{dst: dst, first: first, end: next, expert: expert, item: t.items}, t.sets[n-1])
		}
		first = next
	}
}

// addCell adds a cell with what a set adds to a matrix, if it does.
func (t *Additions) addCell(m *weight.Matrix, in AdapterRows, c cell, set []Adapted) {
	c.lows = len(t.lows)
	for _, s := range set {
		pair := s.Adapter.Pair(m.Number())
		if pair == nil {
			continue
		}
		p := low{pair: pair, scale: float32(pair.Scale * s.Scale), in: in, cell: len(t.cells)}
		at, shared := t.same(&p, &c)
		if p.at = at; !shared {
			p.at = len(t.low)
			t.low = longer(t.low, (c.end-c.first)*pair.A.Out())
		}
		t.lows = append(t.lows, p)
		if !shared {
			t.product(len(t.lows)-1, &c)
		}
	}
	if c.limit = len(t.lows); c.limit > c.lows {
		t.items += (m.Groups() + itemGroups - 1) / itemGroups
		t.cells = append(t.cells, c)
	}
}

// same finds an earlier product of the same rows with the same A: the parts of a fused matrix share it.
func (t *Additions) same(p *low, c *cell) (at int, ok bool) {
	for i := len(t.lows) - 1; i >= 0 && len(t.lows)-i <= lookBack; i-- {
		if o := &t.lows[i]; o.pair.A == p.pair.A && t.sameRows(o, p, c) {
			return o.at, true
		}
	}
	return 0, false
}

// sameRows reports whether an earlier low has the rows of a low of the cell c, which is not among the cells yet.
func (t *Additions) sameRows(o, p *low, c *cell) bool {
	return o.cell < len(t.cells) && o.in.ID == p.in.ID && t.cells[o.cell].first == c.first && t.cells[o.cell].expert == c.expert
}

// product adds the products of a cell's rows with the A of a low: to a product with As that lie before it, or new ones.
func (t *Additions) product(n int, c *cell) {
	l := &t.lows[n]
	m, group := l.pair.A.Whole()
	l.group = group
	from, to := group, group+l.pair.A.Groups()
	for i := len(t.products) - 1; i >= 0 && len(t.products)-i <= lookBack; i-- {
		p := &t.products[i]
		o := &t.lows[p.last]
		if p.m == m && p.to == from && to-p.from <= productGroups && t.sameRows(o, l, c) {
			o.next, p.last, p.to = n, n, to
			return
		}
	}
	for ; from < to; from += productGroups {
		t.products = append(t.products, lowrankProduct{m: m, first: n, last: n, from: from, to: min(from+productGroups, to)})
	}
}

// Do implements [par.Task]: an item is some outputs of a cell's products with B, for pairs of a row and an expert.
func (t *Additions) Do(worker, item int) {
	t.Lower(worker)
	c := &t.cells[sort.Search(len(t.cells), func(i int) bool { return t.cells[i].item > item })-1]
	first := (item - c.item) * itemGroups
	t.await()
	t.raiseRows(worker, c, c.first, c.end, first, min(first+itemGroups, t.lows[c.lows].pair.B.Groups()))
}

// Lower does products with A that no thread has begun. Every thread calls it before [Additions.Raise].
func (t *Additions) Lower(worker int) {
	n := int32(len(t.products))
	for t.begun.Load() < n {
		if i := t.begun.Add(1) - 1; i < n {
			t.lower(worker, &t.products[i])
		}
	}
}

// await returns when the products with A are done. All have been begun, by threads that do not wait.
func (t *Additions) await() {
	const checks = 1 << 10
	for i := 1; t.left.Load() > 0; i++ {
		if i%checks == 0 {
			runtime.Gosched()
		}
	}
}

// lower does a product with As.
func (t *Additions) lower(worker int, p *lowrankProduct) {
	defer t.left.Add(-1) // after a fault too: others wait for it
	l := &t.lows[p.first]
	c, rows := &t.cells[l.cell], &t.rows[worker]
	n, width := c.end-c.first, (p.to-p.from)*p.m.Format.Group
	*rows = kernel.Rows{N: n, K: p.m.In(), F: l.in.F[c.first*l.in.Width : c.end*l.in.Width]}
	out := grown(t.up[worker], n*width)
	t.up[worker] = out
	width = p.m.MultiplyPart(out, c.expert, p.from, p.to, rows, &t.scratch[worker])
	for i := p.first; ; i = t.lows[i].next {
		l := &t.lows[i]
		at, rank := (l.group-p.from)*p.m.Format.Group, l.pair.A.Out()
		from, to := max(0, -at), min(rank, width-at)
		for r := range n {
			copy(t.low[l.at+r*rank+from:l.at+r*rank+to], out[r*width+at+from:])
		}
		if i == p.last {
			return
		}
	}
}

// Raise adds to the groups [first, end) of the rows [row, limit) of a product what B makes of their products with A. Different groups or
// rows may be raised at a time, by different workers.
func (t *Additions) Raise(worker int, of AdapterCells, row, limit, first, end int) {
	t.await()
	for i := of.First; i < of.First+of.N; i++ {
		if c := &t.cells[i]; c.first < limit && c.end > row {
			t.raiseRows(worker, c, max(c.first, row), min(c.end, limit), first, end)
		}
	}
}

// raiseRows multiplies some rows of a cell by some outputs of its Bs, in the order of the set, and adds the products.
func (t *Additions) raiseRows(worker int, c *cell, row, limit, first, end int) {
	for i := c.lows; i < c.limit; i++ {
		p := &t.lows[i]
		m, n := p.pair.B, limit-row
		lo, hi := first*m.Format.Group, min(end*m.Format.Group, m.Out())
		up, rows := grown(t.up[worker], n*(hi-lo)), &t.rows[worker]
		t.up[worker] = up
		at := p.at + (row-c.first)*m.In()
		*rows = kernel.Rows{N: n, K: m.In(), F: t.low[at : at+n*m.In()]}
		m.MultiplyPart(up, c.expert, first, end, rows, &t.scratch[worker])
		for r := range n {
			kernel.AddScaled(c.dst.row(row + r)[lo:hi], p.scale, up[r*(hi-lo):(r+1)*(hi-lo)])
		}
	}
}

// Embed adds what a set adds to the embedding of an id.
func (t *Additions) Embed(worker int, dst []float32, table *weight.Matrix, id, set int) {
	if set == 0 || table.Lookup() == 0 {
		return
	}
	for _, a := range t.sets[set-1] {
		p := a.Adapter.Pair(table.Lookup())
		if p == nil {
			continue
		}
		rank, width := p.A.In(), p.B.Out()
		up, rows := grown(t.up[worker], rank+width), &t.rows[worker]
		t.up[worker] = up
		p.A.Embedding(up[:rank], id, &t.scratch[worker])
		*rows = kernel.Rows{N: 1, K: rank, F: up[:rank]}
		p.B.Multiply(up[rank:], width, 0, 0, p.B.Groups(), rows, &t.scratch[worker])
		kernel.AddScaled(dst, float32(p.Scale*a.Scale), up[rank:])
	}
}

// longer makes s longer by n values.
func longer(s []float32, n int) []float32 {
	if len(s)+n > cap(s) {
		s = append(make([]float32, 0, 2*(len(s)+n)), s...)
	}
	return s[:len(s)+n]
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
