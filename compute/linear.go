package compute

import "grove/internal/kernel"

// Projection is a matrix product that a layer does: the matrix, and a bias where it has one.
type Projection struct {
	Matrix *Matrix
	Bias   Vector
}

// maxProjections is how many matrices one pass of the threads can multiply.
const maxProjections = 3

// Linear returns the products of each row with the matrix, plus the bias where there is one (N1).
func (x *Exec) Linear(p Projection, a Buf) Buf {
	dst := x.alloc(a.rows, p.Matrix.out)
	x.multiply(p, a, dst)
	return dst
}

func (x *Exec) multiply(p Projection, a, dst Buf) {
	x.linearTask.begin(x, a)
	x.linearTask.add(p, dst, nil)
	x.linearTask.run()
}

// Linears returns the products of each row with at most three matrices, in one pass of the threads. The
// slice is valid until the next call.
func (x *Exec) Linears(ps []Projection, a Buf) []Buf {
	x.linearTask.begin(x, a)
	x.products = x.products[:0]
	for _, p := range ps {
		dst := x.alloc(a.rows, p.Matrix.out)
		x.products = append(x.products, dst)
		x.linearTask.add(p, dst, nil)
	}
	x.linearTask.run()
	return x.products
}

// linearTask is some matrix products with the same rows; an item is a chunk of groups of outputs of one of
// them, so that groups are shared out among the threads (N3).
type linearTask struct {
	x     *Exec
	a     Buf
	rows  kernel.Rows
	parts [maxProjections]linearPart
	n     int // parts
}

// linearPart is one product of a linearTask.
type linearPart struct {
	Projection
	dst          Buf
	subset       []int32 // the groups of outputs that are wanted, ascending; nil: all
	chunk, items int     // in groups that are wanted
}

func (t *linearTask) begin(x *Exec, a Buf) {
	t.x, t.a, t.n = x, a, 0
	t.rows = kernel.Rows{N: a.rows, K: a.width, F: a.f}
}

// add adds a product, of which the groups of a subset are computed; nil: all.
func (t *linearTask) add(p Projection, dst Buf, subset []int32) {
	m := p.Matrix
	if t.a.width != m.k {
		panic("compute: a product of rows and a matrix of different widths")
	}
	if m.format.Quantized {
		t.rows = *t.x.quantize(t.a)
	}
	groups := m.groups()
	if subset != nil {
		groups = len(subset)
	}
	chunk := chunkOf(m, groups, t.a.rows, t.x.pool.Threads())
	t.parts[t.n] = linearPart{Projection: p, dst: dst, subset: subset, chunk: chunk, items: (groups + chunk - 1) / chunk}
	t.n++
}

func (t *linearTask) run() {
	items := 0
	for i := range t.n {
		items += t.parts[i].items
	}
	t.x.pool.Run(items, t)
}

// Do implements [par.Task].
func (t *linearTask) Do(worker, item int) {
	i := 0
	for item >= t.parts[i].items {
		item -= t.parts[i].items
		i++
	}
	p := &t.parts[i]
	first, end := item*p.chunk, (item+1)*p.chunk
	if p.subset == nil {
		t.groups(p, worker, first, min(end, p.Matrix.groups()))
		return
	}
	wanted := p.subset[first:min(end, len(p.subset))]
	for len(wanted) > 0 { // neighbours together
		n := 1
		for n < len(wanted) && wanted[n] == wanted[n-1]+1 {
			n++
		}
		t.groups(p, worker, int(wanted[0]), int(wanted[0])+n)
		wanted = wanted[n:]
	}
}

// groups computes the groups [first, end) of outputs of a product.
func (t *linearTask) groups(p *linearPart, worker, first, end int) {
	m := p.Matrix
	m.multiply(p.dst.f, p.dst.width, 0, first, end, &t.rows, &t.x.scratch[worker])
	if p.Bias.f == nil {
		return
	}
	lo, hi := first*m.format.Group, min(end*m.format.Group, m.out)
	for r := range p.dst.rows {
		kernel.Add(p.dst.row(r)[lo:hi], p.Bias.f[lo:hi])
	}
}

// chunkOf cuts a product of some rows into items of some groups of outputs: as long as they can be, for the
// weights stream from memory and every start of an item breaks the stream; four for each thread, so that one
// that is held up does not hold up the rest.
func chunkOf(m *Matrix, groups, rows, threads int) int {
	const (
		inline         = 1 << 15 // multiply-adds that one thread does before another could begin
		itemsPerThread = 4
	)
	if threads == 1 || groups*rows*m.k*m.format.Group < inline {
		return max(1, groups)
	}
	return max(1, groups/(threads*itemsPerThread))
}
