package walk

import (
	"grove/internal/kernel/scan"
	"grove/kv"
)

// Task advances a recurrence of a layer along a plan. An item is some parts of the states of one tree: no sum crosses parts (N3).
// It implements par.Task.
type Task struct {
	Plan Plan

	cache   *kv.Cache
	op      scan.Op
	layer   int
	state   int
	in, out []float32
	size    int // values of a part
	parts   int // of an item
	items   int // of a tree
	records []float32
	stride  int // of records
	scratch [][]float32
}

// NewTask makes a task for so many threads.
func NewTask(threads int) Task { return Task{scratch: make([][]float32, threads)} }

const (
	// valuesPerNano is about the values of a state that one thread advances by a row, or copies, in a nanosecond.
	valuesPerNano = 4
	// leastItem is the least time of an item in nanoseconds, ten times what it costs to claim one.
	leastItem = 3000
	// itemsPerThread lets others take over what a thread that is held up does not do.
	itemsPerThread = 4
)

// Begin makes the task that of a recurrence over the active rows of the plan, whose inputs and outputs lie one behind the other, and
// returns the number of its items.
func (t *Task) Begin(cache *kv.Cache, layer, state int, op scan.Op, in, out []float32) int {
	t.cache, t.layer, t.state, t.op, t.in, t.out = cache, layer, state, op, in, out
	t.size = op.Size()
	t.records, t.stride = cache.Records(0, layer, state)
	rows := 0
	for i := range t.Plan.Trees {
		rows = max(rows, t.Plan.Trees[i].Rows)
	}
	for w := range t.scratch {
		if n := t.Plan.Levels * t.size; cap(t.scratch[w]) < n {
			t.scratch[w] = make([]float32, n)
		}
	}
	part, all := max(1, (rows+2)*t.size/valuesPerNano), len(t.Plan.Trees)*op.Parts()
	t.parts = max(1, all/(len(t.scratch)*itemsPerThread), (leastItem+part-1)/part)
	if t.parts = min(t.parts, op.Parts()); len(t.scratch) == 1 || all*part < 2*leastItem {
		t.parts, t.items = op.Parts(), 0
		return 1
	}
	t.items = (op.Parts() + t.parts - 1) / t.parts
	return len(t.Plan.Trees) * t.items
}

// Do implements par.Task.
func (t *Task) Do(worker, item int) {
	if t.items == 0 { // one item of all
		for i := range t.Plan.Trees {
			t.tree(&t.Plan.Trees[i], 0, worker)
		}
		return
	}
	t.tree(&t.Plan.Trees[item/t.items], item%t.items*t.parts, worker)
}

// tree walks an item's parts of a tree, from part first on.
func (t *Task) tree(tree *Tree, first, worker int) {
	for part := first; part < min(first+t.parts, t.op.Parts()); part++ {
		t.walk(tree, part, t.scratch[worker][:cap(t.scratch[worker])])
	}
}

// walk advances a part of the states of a tree.
func (t *Task) walk(tree *Tree, part int, levels []float32) {
	n, base := t.size, levels[:t.size]
	if tree.In != kv.NoState {
		base = t.stored(tree.In, part)
	}
	if tree.From == kv.NoState {
		clear(base)
	} else {
		copy(base, t.stored(tree.From, part))
	}
	record, out := t.op.Record(), t.op.Out()
	for _, o := range tree.Ops {
		state := base
		if o.Level > 0 {
			state = levels[int(o.Level)*n : (int(o.Level)+1)*n]
		}
		first, rows := int(o.First), int(o.N)
		switch o.Kind {
		case Rows:
			t.op.Advance(part, state, t.in[first*record:], record, rows, t.out[first*out:], out)
		case Records:
			t.op.Advance(part, state, t.records[first*t.stride:], t.stride, rows, nil, 0)
		case Branch:
			copy(levels[int(o.Level+1)*n:int(o.Level+2)*n], state)
		case Store:
			copy(t.stored(o.First, part), base)
		}
	}
}

// stored returns a part of a stored state.
func (t *Task) stored(id int32, part int) []float32 {
	return t.cache.State(id, t.layer, t.state)[part*t.size : (part+1)*t.size]
}
