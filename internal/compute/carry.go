package compute

import (
	"grove/internal/forest"
	"grove/internal/kernel"
)

// Carry begins a step of a model whose rows carry n values from layer to layer beside their stream: more streams, inputs of
// layers. It comes before [Exec.Embed]. Rows that begin carry zeros until [Exec.SetCarried]; a resumed row has
// what it carried where it stopped.
func (x *Exec) Carry(n int) {
	if x.carry = n; len(x.carried) < x.Step.Max()*n {
		x.carried = make([]float32, x.Step.Max()*n)
	}
	for i, r := range x.Step.Rows() {
		if r.Resume == forest.Trunk {
			clear(x.carriedRow(int32(i)))
		} else {
			copy(x.carriedRow(int32(i)), x.keptCarried[int(r.Slot)*n:])
		}
	}
}

func (x *Exec) carriedRow(i int32) []float32 {
	return x.carried[int(i)*x.carry : (int(i)+1)*x.carry]
}

// keepCarried stores what a row carries that stops before the last layer.
func (x *Exec) keepCarried(i int32) {
	if x.carry == 0 {
		return
	}
	if x.keptCarried == nil {
		x.keptCarried = make([]float32, x.Cache.Forest.Slots()*x.carry)
	}
	copy(x.keptCarried[int(x.Step.Rows()[i].Slot)*x.carry:], x.carriedRow(i))
}

// Begin returns the stream of the rows that begin in this step, behind [Exec.Embed] and before the first layer, which
// [Exec.Leave] ends as it ends a layer. It returns false where there are none, as all are resumed, or the step has failed.
func (x *Exec) Begin() (Buf, bool) { return x.begin(false) }

// BeginBlocks is [Exec.Begin] for the rows of blocks alone.
func (x *Exec) BeginBlocks() (Buf, bool) { return x.begin(true) }

func (x *Exec) begin(blocks bool) (Buf, bool) {
	if x.err != nil {
		return Buf{}, false
	}
	x.active = x.active[:0]
	for i, r := range x.Step.Rows() {
		if r.Resume == forest.Trunk && (r.Block > 0 || !blocks) {
			x.active = append(x.active, int32(i))
		}
	}
	return x.gather()
}

// smooth adds to the stream what the priors with a weight expect, times scale.
func (x *Exec) smooth(table *Matrix, scale float32) {
	x.priors.Reset()
	rows := x.Step.Rows()
	for i := range rows {
		if p := rows[i].Prior; p != nil && p.Weight != 0 {
			x.priors.Add(p, x.streamRow(int32(i)))
		}
	}
	x.priors.Run(x.pool, table, scale, x.scratch)
}

// Expected returns the embeddings that the priors of the rows of [Exec.BeginBlocks] expect, times scale; 0 where a row has none. It costs a product of a
// row with the whole table, at most: tokens that change nothing are left out.
func (x *Exec) Expected(table *Matrix, scale float32) Buf {
	dst := x.alloc(len(x.active), table.In())
	x.priors.Reset()
	for a, i := range x.active {
		if p := x.Step.Rows()[i].Prior; p != nil && p.Weight == 0 {
			x.priors.Add(p, dst.row(a))
		} else {
			clear(dst.row(a))
		}
	}
	x.priors.Run(x.pool, table, scale, x.scratch)
	return dst
}

// Carried returns a copy of n of the values that the rows carry, from place first on: between [Exec.Enter] and [Exec.Leave] of the
// rows of the layer, behind [Exec.Outputs] of the rows that it returned.
func (x *Exec) Carried(first, n int) Buf {
	dst := x.alloc(len(x.active), n)
	x.rowTask = rowTask{kind: carriedRows, x: x, dst: dst, from: first}
	x.runRows(dst.rows, n)
	return dst
}

// SetCarried makes a what the rows carry from place first on.
func (x *Exec) SetCarried(first int, a Buf) {
	x.rowTask = rowTask{kind: setCarriedRows, x: x, a: a, to: first}
	x.runRows(a.rows, a.width)
}

// Lookup returns the rows of a second table of embeddings by the inputs of the step's rows, times scale: of an id its own, of a
// mixture the weighted sum, and of a vector, which has none unless the step is one of [Exec.EmbedPairs], that of id 0. The table has the ids of that of [Exec.Embed]. It is for rows
// that begin: see [Exec.Begin].
func (x *Exec) Lookup(table *Matrix, scale float32) Buf {
	dst := x.alloc(len(x.active), table.In())
	x.rowTask = rowTask{kind: lookupRows, x: x, dst: dst, table: table, scale: scale}
	for _, i := range x.active {
		if x.Step.Rows()[i].Mix != nil {
			x.rowTask.a = x.alloc(dst.rows, dst.width)
			break
		}
	}
	x.runRows(dst.rows, dst.width*4)
	return dst
}

func (t *rowTask) lookup(worker, i int) {
	r := &t.x.Step.Rows()[t.x.active[i]]
	if r.Vector != nil && !t.x.pairs.on {
		r = &forest.Placed{Row: forest.Row{Adapter: r.Adapter}}
	}
	t.lookUp(t.dst.row(i), worker, i, r)
}

// lookUp writes the embedding of a row's id or mixture to dst.
func (t *rowTask) lookUp(dst []float32, worker, i int, r *forest.Placed) {
	if r.Mix != nil {
		clear(dst)
		for _, w := range r.Mix {
			one := t.a.row(i)
			t.table.Embedding(one, int(w.ID), &t.x.scratch[worker])
			t.x.adapt.Embed(worker, one, t.table, int(w.ID), r.Adapter)
			kernel.AddScaled(dst, w.Weight, one)
		}
	} else {
		t.table.Embedding(dst, int(r.ID), &t.x.scratch[worker])
		t.x.adapt.Embed(worker, dst, t.table, int(r.ID), r.Adapter)
	}
	if t.scale != 1 {
		kernel.Scale(dst, t.scale)
	}
}
