package compute

import (
	"grove/internal/kernel/scan"
	"grove/internal/kv"
)

// WalkTask advances a recurrence of a layer along a plan. An item is some parts of the states of one tree: no sum crosses parts (N3).
// It implements par.Task.
type WalkTask struct {
	Plan WalkPlan

	cache   *kv.Cache
	op      scan.Op
	layer   int
	state   int
	in, out []float32
	size    int // values of a part
	parts   int // of an item
	items   int // of a tree
	records []float32
	stride  int       // of records
	zeros   []float32 // a part's state before the first row
	workers []worker
}

// worker is a thread's room for the working states of a part.
type worker struct {
	values []float32   // by level
	at     [][]float32 // by level, where its state is; no copy is made until it is advanced
}

// NewWalkTask makes a task for so many threads.
func NewWalkTask(threads int) WalkTask { return WalkTask{workers: make([]worker, threads)} }

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
func (t *WalkTask) Begin(cache *kv.Cache, layer, state int, op scan.Op, in, out []float32) int {
	t.cache, t.layer, t.state, t.op, t.in, t.out = cache, layer, state, op, in, out
	t.size = op.Size()
	t.records, t.stride = cache.Records(0, layer, state)
	rows := 0
	for i := range t.Plan.Trees {
		rows = max(rows, t.Plan.Trees[i].Rows)
	}
	if len(t.zeros) < t.size {
		t.zeros = make([]float32, t.size)
	}
	for i := range t.workers {
		w := &t.workers[i]
		if n := t.Plan.Levels * t.size; len(w.values) < n {
			w.values = make([]float32, n)
		}
		if len(w.at) < t.Plan.Levels {
			w.at = make([][]float32, t.Plan.Levels)
		}
	}
	part, all := max(1, (rows+2)*t.size/valuesPerNano), len(t.Plan.Trees)*op.Parts()
	t.parts = max(1, all/(len(t.workers)*itemsPerThread), (leastItem+part-1)/part)
	if t.parts = min(t.parts, op.Parts()); len(t.workers) == 1 || all*part < 2*leastItem {
		t.parts, t.items = op.Parts(), 0
		return 1
	}
	t.items = (op.Parts() + t.parts - 1) / t.parts
	return len(t.Plan.Trees) * t.items
}

// Do implements par.Task.
func (t *WalkTask) Do(worker, item int) {
	if t.items == 0 { // one item of all
		for i := range t.Plan.Trees {
			t.tree(&t.Plan.Trees[i], 0, worker)
		}
		return
	}
	t.tree(&t.Plan.Trees[item/t.items], item%t.items*t.parts, worker)
}

// tree walks an item's parts of a tree, from part first on.
func (t *WalkTask) tree(tree *WalkTree, first, worker int) {
	for part := first; part < min(first+t.parts, t.op.Parts()); part++ {
		t.walk(tree, part, &t.workers[worker])
	}
}

// walk advances a part of the states of a tree. A state is read where it is stored and written where it is wanted next, so that
// none is copied but where two places want the same one.
func (t *WalkTask) walk(tree *WalkTree, part int, w *worker) {
	end := w.values[:t.size] // where level 0 is at last
	if tree.In != kv.NoState {
		end = t.stored(tree.In, part)
	}
	w.at[0] = t.zeros[:t.size]
	if tree.From != kv.NoState {
		w.at[0] = t.stored(tree.From, part)
	}
	record, out := t.op.Record(), t.op.Out()
	for i, o := range tree.Ops {
		first, rows := int(o.First), int(o.N)
		to := end
		switch {
		case o.Level > 0:
			to = w.values[int(o.Level)*t.size:][:t.size]
		case i+1 < len(tree.Ops) && tree.Ops[i+1].Kind == WalkStore:
			to = t.stored(tree.Ops[i+1].First, part)
		}
		switch o.Kind {
		case WalkRows:
			t.op.Advance(part, to, w.at[o.Level], t.in[first*record:], record, rows, t.out[first*out:], out)
			w.at[o.Level] = to
		case WalkRecords:
			t.op.Advance(part, to, w.at[o.Level], t.records[first*t.stride:], t.stride, rows, nil, 0)
			w.at[o.Level] = to
		case WalkBranch: // the level is not advanced before the branch is walked
			w.at[o.Level+1] = w.at[o.Level]
		case WalkStore:
			move(t.stored(o.First, part), w.at[0])
		}
	}
	if tree.In != kv.NoState {
		move(end, w.at[0])
	}
}

// move copies a state, unless it is there.
func move(to, from []float32) {
	if &to[0] != &from[0] {
		copy(to, from)
	}
}

// stored returns a part of a stored state.
func (t *WalkTask) stored(id int32, part int) []float32 {
	return t.cache.State(id, t.layer, t.state)[part*t.size : (part+1)*t.size]
}
