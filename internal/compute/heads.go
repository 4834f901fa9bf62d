package compute

// Buffer returns a buffer of width values for each of a's rows, of unspecified contents, for operations that write
// parts of a row.
func (x *Exec) Buffer(a Buf, width int) Buf { return x.alloc(a.rows, width) }

// CopyHeads copies n values of each head of src, from place from on, to each head of dst, from place to on.
func (x *Exec) CopyHeads(dst Buf, to int, src Buf, from, n, heads int) Buf {
	x.rowTask = rowTask{kind: copyHeads, x: x, dst: dst, a: src, heads: heads, to: to, from: from, n: n}
	x.runRows(src.rows, n*heads)
	return x.changed(dst)
}

func (t *rowTask) copyHead(i int) {
	dst, src := t.dst.row(i), t.a.row(i)
	nd, ns := len(dst)/t.heads, len(src)/t.heads
	for h := range t.heads {
		copy(dst[h*nd+t.to:h*nd+t.to+t.n], src[h*ns+t.from:])
	}
}

// LinearHeads multiplies the first values of each head of src by that head's matrix of the stack m, and writes
// the products to each head of dst from place to on (N1). The rows of a head are gathered into one product, as the
// rows of an expert are.
func (x *Exec) LinearHeads(dst Buf, to int, src Buf, m *Matrix) Buf {
	heads, rows := m.Experts(), src.rows
	in := x.alloc(heads*rows, m.In())
	x.rowTask = rowTask{kind: gatherHeads, x: x, dst: in, a: src, heads: heads}
	x.runRows(rows, heads*m.In())
	r := &x.everyHead
	r.start, r.busy = grow(r.start, heads+1), grow(r.busy, heads)
	for h := range heads {
		r.start[h], r.busy[h] = int32(h*rows), int32(h)
	}
	r.start[heads] = int32(heads * rows)
	out := x.LinearExperts(Projection{Matrix: m}, x.changed(in), r)
	x.rowTask = rowTask{kind: scatterHeads, x: x, dst: dst, a: out, heads: heads, to: to}
	x.runRows(rows, heads*m.Out())
	return x.changed(dst)
}

// gatherHead copies the factors of each head of row i to its product.
func (t *rowTask) gatherHead(i int) {
	src, n := t.a.row(i), t.a.width/t.heads
	for h := range t.heads {
		copy(t.dst.row(h*t.a.rows+i), src[h*n:(h+1)*n])
	}
}

func (t *rowTask) scatterHead(i int) {
	dst, n := t.dst.row(i), t.dst.width/t.heads
	for h := range t.heads {
		copy(dst[h*n+t.to:(h+1)*n], t.a.row(h*t.dst.rows+i))
	}
}
