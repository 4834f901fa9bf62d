package engine

import (
	"sync"

	"grove/kv"
)

// Load is what an engine does at a moment, for monitoring.
type Load struct {
	Open      int      // sequences, those that wait for a slot among them, but not those whose slots were taken while they were idle
	Admitted  int      // of these, those that have a slot; at most [Config.Seqs]
	Waiting   int      // of these, those whose callers wait for a step
	Pages     kv.Usage // as the last step left them
	Steps     int      // made so far, probes aside
	Rows      int      // of all steps
	Failed    int      // steps that were run again for each sequence by itself
	Preempted int      // times that a sequence lost its pages to another

	opened uint64 // sequences so far
}

// load is the figures of an engine with a lock of their own, which is held for moments.
type load struct {
	mu   sync.Mutex
	load Load
}

// note changes the figures.
func (l *load) note(change func(*Load)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.load)
}

// Load returns what the engine does. It does not wait for a step.
func (e *Engine) Load() (now Load) {
	waiting := e.queue.Waiting()
	e.load.note(func(l *Load) { now = *l })
	now.Waiting = waiting
	return now
}
