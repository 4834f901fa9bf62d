package compute

import (
	"grove/internal/compute/weight"
	"grove/internal/kernel"
)

// Matrix is a weight matrix, or a stack of them.
type Matrix = weight.Matrix

// Vector is a row of weights in float32.
type Vector = weight.Vector

// Projection is a matrix product that a layer does: the matrix, and a bias where it has one.
type Projection struct {
	Matrix *Matrix
	Bias   Vector
}

// maxProjections is how many matrices one pass of the threads can multiply.
const maxProjections = 6

// Linear returns the products of each row with the matrix, plus the bias where there is one (N1).
func (x *Exec) Linear(p Projection, a Buf) Buf {
	dst := x.alloc(a.rows, p.Matrix.Out())
	x.multiply(p, a, dst)
	return dst
}

func (x *Exec) multiply(p Projection, a, dst Buf) {
	x.linearTask.begin(x, a)
	x.linearTask.add(p, dst, nil)
	x.linearTask.run()
}

// Linears returns the products of each row with at most six matrices, in one pass of the threads. The
// slice is valid until the next call.
func (x *Exec) Linears(ps []Projection, a Buf) []Buf {
	x.linearTask.begin(x, a)
	x.products = x.products[:0]
	for _, p := range ps {
		dst := x.alloc(a.rows, p.Matrix.Out())
		x.products = append(x.products, dst)
		x.linearTask.add(p, dst, nil)
	}
	x.linearTask.run()
	return x.products
}

// linearTask is some matrix products with the same rows. Their groups of outputs follow each other in a line; an item is a
// stretch of it, for a band of the rows, so that groups are shared out among the threads (N3).
type linearTask struct {
	x      *Exec
	a      Buf
	rows   kernel.Rows
	parts  [maxProjections]linearPart
	n      int // parts
	groups int // of all parts, or units
	cut    Cut

	gate    Gate         // of the outputs of the first part, times those of the second; an item is units of both
	rounded *kernel.Rows // of what the gate gives; nil: none
}

// linearPart is one product of a linearTask.
type linearPart struct {
	Projection
	dst     Buf
	subset  []int32      // the groups of outputs that are wanted, ascending; nil: all
	groups  int          // that are wanted
	adapted AdapterCells // of adapters
}

func (t *linearTask) begin(x *Exec, a Buf) {
	t.x, t.a, t.n, t.groups = x, a, 0, 0
	t.gate, t.rounded = noGate, nil
	t.rows = kernel.Rows{N: a.rows, K: a.width, F: a.f}
}

// add adds a product, of which the groups of a subset are computed; nil: all.
func (t *linearTask) add(p Projection, dst Buf, subset []int32) {
	m := p.Matrix
	if t.a.width != m.In() {
		panic("compute: a product of rows and a matrix of different widths")
	}
	if m.Format.Quantized {
		t.rows = *t.x.quantize(t.a)
	}
	part := linearPart{Projection: p, dst: dst, subset: subset, groups: m.Groups()}
	if subset != nil {
		part.groups = len(subset)
	}
	t.parts[t.n] = part
	t.n++
	t.groups += part.groups
}

// run runs the products. Those with the A of adapters are done on the way: an item adds what B makes of them.
func (t *linearTask) run() {
	t.plan()
	if adapt := &t.x.adapt; adapt.On {
		adapt.Clear()
		for i := range t.n {
			p := &t.parts[i]
			p.adapted = adapt.Add(p.Matrix, t.a.plain(), p.dst.plain(), t.a.rows)
		}
		adapt.Ready()
	}
	t.x.pool.Run(t.cut.Items(), t)
}

// plan cuts the products into items.
func (t *linearTask) plan() {
	var work CutWork // the mean
	for i := range t.n {
		p := &t.parts[i]
		w := CutWorkOf(p.Matrix)
		work.Read += w.Read * p.groups
		work.Row = w.Row
	}
	work.Read /= max(1, t.groups)
	if t.gate != noGate {
		t.groups = (t.parts[0].groups + unitGroups - 1) / unitGroups
		work.Read, work.Row = work.Read*2*unitGroups, work.Row*2*unitGroups
	}
	t.cut = CutOf(t.groups, t.a.rows, t.x.pool.Threads(), work)
}

// stretch returns the groups [from, to) of the line that an item computes, or the units.
func (t *linearTask) stretch(item int) (from, to int) {
	from = item / t.cut.Bands * t.cut.Chunk
	return from, min(from+t.cut.Chunk, t.groups)
}

// Do implements [par.Task].
func (t *linearTask) Do(worker, item int) {
	if t.x.adapt.On {
		t.x.adapt.Lower(worker)
	}
	rows, row := &t.rows, 0
	if t.cut.Bands > 1 {
		first, end := t.cut.Band(item%t.cut.Bands, t.a.rows)
		rows, row = CutRows(&t.x.bands[worker], &t.rows, first, end), first
	}
	from, to := t.stretch(item)
	if t.gate != noGate {
		t.gated(worker, rows, row, from, to)
		return
	}
	for i := 0; from < to; i++ {
		p := &t.parts[i]
		if end := min(to, p.groups); from < end {
			t.part(p, worker, rows, row, from, end)
			from = end
		}
		from, to = from-p.groups, to-p.groups
	}
}

// part computes the groups [first, end) of those that are wanted of a product, for the rows from row on.
func (t *linearTask) part(p *linearPart, worker int, rows *kernel.Rows, row, first, end int) {
	if p.subset == nil {
		t.multiply(p, worker, rows, row, first, end)
		return
	}
	wanted := p.subset[first:end]
	for len(wanted) > 0 { // neighbours together
		n := 1
		for n < len(wanted) && wanted[n] == wanted[n-1]+1 {
			n++
		}
		t.multiply(p, worker, rows, row, int(wanted[0]), int(wanted[0])+n)
		wanted = wanted[n:]
	}
}

// multiply computes the groups [first, end) of outputs of a product, for the rows from row on.
func (t *linearTask) multiply(p *linearPart, worker int, rows *kernel.Rows, row, first, end int) {
	m := p.Matrix
	m.Multiply(p.dst.f[row*p.dst.width:], p.dst.width, 0, first, end, rows, &t.x.scratch[worker])
	if p.Bias.F != nil {
		lo, hi := first*m.Format.Group, min(end*m.Format.Group, m.Out())
		for r := row; r < row+rows.N; r++ {
			kernel.Add(p.dst.row(r)[lo:hi], p.Bias.F[lo:hi])
		}
	}
	if p.adapted.N > 0 {
		t.x.adapt.Raise(worker, p.adapted, row, row+rows.N, first, end)
	}
}

// Bytes implements [par.Reader].
func (t *linearTask) Bytes(item int) (n int) {
	from, to := t.stretch(item)
	if t.gate != noGate {
		from, to = t.unitsOf(from, to)
		return (to - from) * (t.parts[0].Matrix.GroupBytes() + t.parts[1].Matrix.GroupBytes())
	}
	for i := 0; from < to; i++ {
		p := &t.parts[i]
		if end := min(to, p.groups); from < end {
			n += (end - from) * p.Matrix.GroupBytes()
			from = end
		}
		from, to = from-p.groups, to-p.groups
	}
	return n
}
