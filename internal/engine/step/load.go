package step

import (
	"sync"

	"grove/internal/kv"
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

	Prefixes Prefixes
}

// Prefixes counts what was read from the folder of prefixes, and written to it.
type Prefixes struct {
	Open    int // engines that use the folder: the identity of their models is known
	Found   int // texts that went on behind pages that were read
	Tokens  int // of these pages, which were not computed
	Read    int // files
	Refused int // files that could not be used: damaged, or not to be read
	Written int // files
	Failed  int // texts of which a page could not be written
	Dropped int // texts that were not written, since too many waited
	Removed int // files that made room for others
	Queued  int // texts that are written or are to be
}

// Add adds the counts of another folder, or of another engine.
func (p *Prefixes) Add(o Prefixes) {
	p.Found, p.Tokens, p.Read, p.Refused = p.Found+o.Found, p.Tokens+o.Tokens, p.Read+o.Read, p.Refused+o.Refused
	p.Written, p.Failed, p.Dropped = p.Written+o.Written, p.Failed+o.Failed, p.Dropped+o.Dropped
	p.Removed, p.Queued, p.Open = p.Removed+o.Removed, p.Queued+o.Queued, p.Open+o.Open
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
