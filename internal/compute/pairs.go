package compute

import (
	"fmt"

	"grove/internal/kernel"
)

// pairs describes the inputs of a draft module's rows.
type pairs struct {
	on     bool
	vector int // values of a feature at most
	ids    int // further ids at most
}

// EmbedPairs begins a step of a draft module, whose rows have an id and a vector: the module reads a token, and the target's state before it. The
// stream is the embedding of the row's ID, times scale. A row carries its Vector, of at most so many values, and behind them, from place vector on, the scaled
// embeddings of the ids of its Mix, ids of them at most; weights are not read. Zeros stand where a row has less. [Exec.Carried] returns
// what rows carry. A resumed row fails the step.
func (x *Exec) EmbedPairs(table *Matrix, scale float32, vector, ids int) {
	x.pairs = pairs{on: true, vector: vector, ids: ids}
	x.Carry(vector + ids*x.width)
	rows := x.Step.Rows()
	for i := range rows {
		if err := x.check(&rows[i], table.Out()); err != nil {
			x.fail(err)
			return
		}
	}
	x.rowTask = rowTask{kind: embedPairs, x: x, table: table, scale: scale}
	x.runRows(len(rows), x.width*4)
}

// embedPair fills row i of the stream and what it carries.
func (t *rowTask) embedPair(worker, i int) {
	x := t.x
	r := &x.Step.Rows()[i]
	t.embedOne(x.streamRow(int32(i)), worker, int(r.ID))
	carried := x.carriedRow(int32(i))
	copy(carried, r.Vector)
	for k, m := range r.Mix {
		t.embedOne(carried[x.pairs.vector+k*x.width:][:x.width], worker, int(m.ID))
	}
}

// embedOne writes the scaled embedding of an id to dst.
func (t *rowTask) embedOne(dst []float32, worker, id int) {
	t.table.Embedding(dst, id, &t.x.scratch[worker])
	if t.scale != 1 {
		kernel.Scale(dst, t.scale)
	}
}

// TakeVectors replaces the rows of a whose vector has as many values as a: a draft module that makes its input of the target's
// features takes its own state as it is. It works in place.
func (x *Exec) TakeVectors(a Buf) Buf {
	rows := x.Step.Rows()
	for k, i := range x.active {
		if v := rows[i].Vector; len(v) == a.width {
			copy(a.row(k), v)
		}
	}
	return x.changed(a)
}

// Behind returns for each row of a that of the row before it in its block, or with first that of the block's first row: a row with a vector, which gets its own, begins
// a block, and the rows without one that follow it in the step are its path.
func (x *Exec) Behind(a Buf, first bool) Buf {
	dst, rows, begins := x.alloc(a.rows, a.width), x.Step.Rows(), 0
	for k, i := range x.active {
		from := max(k-1, 0)
		if rows[i].Vector != nil {
			begins, from = k, k
		} else if first {
			from = begins
		}
		copy(dst.row(k), a.row(from))
	}
	return dst
}

// Only returns the stream of those rows of a layer that have a vector and no further ids, or of the others, as [Exec.Enter] does of all, so that
// a layer treats the two kinds in turn.
func (x *Exec) Only(layer int, vectors bool) (Buf, bool) {
	x.active = x.active[:0]
	for i, r := range x.Step.Rows() {
		if r.Run.Has(layer) && (r.Vector != nil && r.Mix == nil) == vectors {
			x.active = append(x.active, int32(i))
		}
	}
	return x.gather()
}

// LogitsByLayer ends a step of a model whose rows end with several layers, each of which has a head of its own: heads[k] is that of
// the rows whose last layer is k. It reads as many of a row's values as it has; a layer that no row with logits ends with needs none. It is [Exec.Logits] otherwise.
func (x *Exec) LogitsByLayer(a Buf, heads []Projection) {
	x.reportStates(a)
	if x.heads == 0 || x.err != nil {
		return
	}
	rows, out := x.Step.Rows(), heads[len(heads)-1].Matrix.Out()
	x.logits = grow(x.logits, x.heads*out)
	one, product := x.alloc(x.heads, a.width), x.alloc(x.heads, out)
	for k, head := range heads {
		n := 0
		for o, i := range x.outputs[:x.heads] {
			if rows[i].Run.Last() == k {
				copy(one.f[n*head.Matrix.In():], a.row(o)[:head.Matrix.In()])
				n++
			}
		}
		if n == 0 {
			continue
		}
		in := x.changed(Buf{f: one.f[:n*head.Matrix.In()], rows: n, width: head.Matrix.In()})
		of := x.changed(Buf{f: product.f[:n*out], rows: n, width: out})
		x.linearTask.begin(x, in)
		x.linearTask.add(head, of, nil)
		x.linearTask.run()
		n = 0
		for o, i := range x.outputs[:x.heads] {
			if rows[i].Run.Last() != k {
				continue
			}
			logits := x.logits[o*out:][:out]
			copy(logits, of.row(n))
			n++
			if !x.report(&x.results[i], rows[i].Want, logits, 0) {
				x.fail(fmt.Errorf("compute: the logits at index %d: %w", rows[i].Index, ErrNotFinite))
				return
			}
		}
	}
}
