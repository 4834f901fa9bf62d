package par

import "time"

// A Trace is the times of the items of a pool's Runs, each without any other item beside it.
type Trace struct {
	// Runs are the Runs since [Trace.Reset].
	Runs []TracedRun

	threads int
	items   []TracedItem
	last    time.Time // when the Run before ended
}

// TracedRun is one Run.
type TracedRun struct {
	Before time.Duration // since the end of the Run before, on the caller's thread; of the first one since Reset
	Items  []TracedItem
}

// TracedItem is one item.
type TracedItem struct {
	Time  time.Duration
	Bytes int // of memory that it reads, as a [Reader] tells; 0: not known
}

// A Reader is a task that knows the bytes of weights or of a cache that an item reads.
type Reader interface {
	Task
	Bytes(item int) int
}

// NewTraced returns a pool that has so many threads for those who cut work into items, and does all items in turn on the
// caller's thread, as worker 0. It records their times. The trace is the caller's to read between Runs.
func NewTraced(threads int) (*Pool, *Trace) {
	p := New(1)
	p.trace = &Trace{threads: max(1, threads)}
	p.trace.Reset()
	return p, p.trace
}

// Reset forgets all Runs. Their slices are used again.
func (t *Trace) Reset() {
	t.Runs, t.items = t.Runs[:0], t.items[:0]
	t.last = time.Now()
}

// run does and records all items of a task.
func (t *Trace) run(n int, task Task) {
	start := time.Now()
	run := TracedRun{Before: start.Sub(t.last)}
	reader, _ := task.(Reader)
	first := len(t.items)
	for item := range n {
		task.Do(0, item)
		end := time.Now()
		one := TracedItem{Time: end.Sub(start)}
		if reader != nil {
			one.Bytes = reader.Bytes(item)
		}
		t.items = append(t.items, one)
		start = time.Now()
	}
	run.Items = t.items[first:len(t.items):len(t.items)]
	t.Runs = append(t.Runs, run)
	t.last = start
}
