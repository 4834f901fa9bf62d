package compute

import (
	"fmt"

	"grove/compute/walk"
	"grove/internal/kernel/scan"
	"grove/kv"
)

// Recur runs recurrence number state of a layer over the rows of the step, each behind the state of its parent, and returns its
// outputs, [rows, op.Out()]. in is the rows' inputs, [rows, op.Record()]. The states of earlier steps are those that the cache
// has; those behind the rows are taken over when the step succeeds (N8).
func (x *Exec) Recur(layer, state int, op scan.Op, in Buf) Buf {
	dst := x.alloc(in.rows, op.Out())
	if x.err != nil {
		return dst
	}
	if s := x.Cache.Config().Layers[layer].States[state]; s.Parts != op.Parts() || s.Size != op.Size() || s.Record != op.Record() || in.width != s.Record {
		x.fail(fmt.Errorf("compute: recurrence %d of layer %d has %d parts of %d values and inputs of %d, and the cache's have %d, %d and %d",
			state, layer, op.Parts(), op.Size(), in.width, s.Parts, s.Size, s.Record))
		return dst
	}
	x.rowTask = rowTask{kind: recordRows, x: x, a: in, layer: layer, n: state}
	x.runRows(in.rows, in.width)
	if whole := x.whole && x.Step.Plain(); !whole || !x.walked {
		x.walk.Make(x.Cache, x.Step, x.active, layer)
		x.walked = whole
	}
	x.recurTask.run(layer, state, op, in, dst)
	return dst
}

// keepRecord copies the input of active row i to its record, if it has one.
func (t *rowTask) keepRecord(i int) {
	k := t.x.Cache
	if record, kept := k.RecordOf(t.x.Step.Rows()[t.x.active[i]].Slot); kept {
		values, _ := k.Records(record, t.layer, t.n)
		copy(values, t.a.row(i))
	}
}

// recurTask is a recurrence of a layer. An item is some parts of the states of one tree of the walk: no sum crosses parts (N3).
type recurTask struct {
	x       *Exec
	op      scan.Op
	layer   int
	state   int
	in, dst Buf
	size    int // values of a part
	parts   int // of an item
	items   int // of a tree
	records []float32
	stride  int // of records
	scratch [][]float32
}

// partsPerNano is the values of a state that one thread advances by a row in a nanosecond, about.
const stateValuesPerNano = 4

func (t *recurTask) run(layer, state int, op scan.Op, in, dst Buf) {
	x := t.x
	t.op, t.layer, t.state, t.in, t.dst, t.size = op, layer, state, in, dst, op.Size()
	t.records, t.stride = x.Cache.Records(0, layer, state)
	threads, trees, most := x.pool.Threads(), len(x.walk.Trees), 0
	for w := range t.scratch {
		t.scratch[w] = grow(t.scratch[w], x.walk.Levels*t.size)
	}
	for i := range x.walk.Trees {
		most = max(most, x.walk.Trees[i].Rows)
	}
	part := max(1, (most+2)*t.size/stateValuesPerNano) // the nanoseconds of a part
	t.parts = max(1, op.Parts()*trees/(threads*itemsPerThread), (leastItem+part-1)/part)
	if threads == 1 || trees*op.Parts()*part < 2*leastItem {
		t.parts = op.Parts()
	}
	t.parts = min(t.parts, op.Parts())
	t.items = (op.Parts() + t.parts - 1) / t.parts
	if n := trees * t.items; n > 1 && threads > 1 && trees*op.Parts()*part >= 2*leastItem {
		x.pool.Run(n, t)
	} else {
		for i := range n {
			t.Do(0, i)
		}
	}
}

// Do implements [par.Task].
func (t *recurTask) Do(worker, item int) {
	tree := &t.x.walk.Trees[item/t.items]
	first := item % t.items * t.parts
	for part := first; part < min(first+t.parts, t.op.Parts()); part++ {
		t.walk(tree, part, t.scratch[worker])
	}
}

// walk advances a part of the states of a tree.
func (t *recurTask) walk(tree *walk.Tree, part int, levels []float32) {
	n, base := t.size, levels[:t.size]
	if tree.In != kv.NoState {
		base = t.stored(tree.In, part)
	}
	if tree.From == kv.NoState {
		clear(base)
	} else {
		copy(base, t.stored(tree.From, part))
	}
	for _, o := range tree.Ops {
		state := base
		if o.Level > 0 {
			state = levels[int(o.Level)*n : (int(o.Level)+1)*n]
		}
		switch o.Kind {
		case walk.Rows:
			t.op.Advance(part, state, t.in.f[int(o.First)*t.in.width:], t.in.width, int(o.N), t.dst.f[int(o.First)*t.dst.width:], t.dst.width)
		case walk.Records:
			t.op.Advance(part, state, t.records[int(o.First)*t.stride:], t.stride, int(o.N), nil, 0)
		case walk.Branch:
			copy(levels[int(o.Level+1)*n:int(o.Level+2)*n], state)
		case walk.Store:
			copy(t.stored(o.First, part), base)
		}
	}
}

// stored returns a part of a stored state.
func (t *recurTask) stored(id int32, part int) []float32 {
	return t.x.Cache.State(id, t.layer, t.state)[part*t.size : (part+1)*t.size]
}
