package compute

import "grove/internal/kernel"

// Linear returns the products of each row with the matrix, plus the bias where there is one (N1).
func (x *Exec) Linear(m *Matrix, a Buf, bias Vector) Buf {
	dst := x.alloc(a.rows, m.out)
	x.multiply(m, a, dst, bias)
	return dst
}

// multiply runs a matrix product, groups of outputs shared out among the threads (N3).
func (x *Exec) multiply(m *Matrix, a, dst Buf, bias Vector) {
	if a.width != m.k {
		panic("compute: a product of rows and a matrix of different widths")
	}
	t := &x.linearTask
	*t = linearTask{m: m, dst: dst, bias: bias.f, packs: x.packs}
	if m.format.Quantized {
		t.rows = *x.quantize(a)
	} else {
		t.rows = kernel.Rows{N: a.rows, K: a.width, F: a.f}
	}
	groups := groupsOf(m)
	t.chunk = chunkOf(groups, a.rows*m.k*m.format.Group, x.pool.Threads())
	x.pool.Run((groups+t.chunk-1)/t.chunk, t)
}

// chunkOf cuts groups that cost work multiply-adds each into items: few enough to be cheap to hand
// out, many enough that a thread which is held up does not hold up the rest.
func chunkOf(groups, work, threads int) int {
	const (
		inline   = 1 << 15 // multiply-adds that one thread does before another could begin
		itemWork = 1 << 16
	)
	if threads == 1 || groups*work < inline {
		return groups
	}
	return min(max(1, itemWork/work), max(1, groups/(threads*4)))
}

// linearTask is one matrix product; an item is chunk groups of outputs.
type linearTask struct {
	m     *Matrix
	rows  kernel.Rows
	dst   Buf
	bias  []float32
	chunk int
	packs [][]byte // scratch, by worker
}

func (t *linearTask) Do(worker, item int) {
	m := t.m
	first := item * t.chunk
	end := min(first+t.chunk, groupsOf(m))
	m.multiply(t.dst.f, t.dst.width, 0, first, end, &t.rows, &t.packs[worker])
	if t.bias == nil {
		return
	}
	lo, hi := first*m.format.Group, min(end*m.format.Group, m.out)
	for r := range t.dst.rows {
		kernel.Add(t.dst.row(r)[lo:hi], t.bias[lo:hi])
	}
}
