package step

import (
	"sync"

	"grove/kv"
)

// Load counts a maker's trunks, pages and steps at a moment.
type Load struct {
	Open      int      // sequences, those that wait for a slot among them, but not those whose slots were taken while they were idle
	Admitted  int      // of these, those that have a slot; at most as many as the engine has
	Waiting   int      // of these, those whose callers wait for a step
	Pages     kv.Usage // as the last change of slots, or the last step, left them
	Steps     int      // made so far, probes aside
	Rows      int      // of all steps
	Failed    int      // steps that were run again for each sequence by itself
	Preempted int      // times that a sequence lost its pages to another
	Opened    uint64   // sequences so far
}

// Figures are a [Load] with a lock of its own, which is held for moments. The zero value is ready; it may be used from all goroutines.
type Figures struct {
	mu  sync.Mutex
	now Load
}

// Note changes the figures. change must not wait for anything.
func (f *Figures) Note(change func(*Load)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.now)
}

// Now returns the figures as they are.
func (f *Figures) Now() Load {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}
