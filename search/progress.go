package search

import (
	"fmt"
	"sync"
)

// Progress is how far a search is.
type Progress struct {
	Samples    int `json:"samples"`    // that are computed side by side
	Tokens     int `json:"tokens"`     // that they were given so far, those that were dropped included
	Branchings int `json:"branchings"` // times that a text was forked or copied
}

// String returns the counts as a line.
func (p Progress) String() string {
	return fmt.Sprintf("searching: %d samples, %d tokens, %d branchings", p.Samples, p.Tokens, p.Branchings)
}

// Watch tells a function how far a search is. It is safe for concurrent use; nil tells nobody.
type Watch struct {
	told func(Progress)
	mu   sync.Mutex
	now  Progress
}

// NewWatch returns a Watch that calls told, one call at a time, whenever the search has come further; nil: none. told must not call the search.
func NewWatch(told func(Progress)) *Watch {
	if told == nil {
		return nil
	}
	return &Watch{told: told}
}

// Tell changes what is known of the search, and tells it.
func (w *Watch) Tell(change func(*Progress)) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.now)
	w.told(w.now)
}

// Drew tells that a sample was given so many tokens.
func (w *Watch) Drew(tokens int) { w.Tell(func(p *Progress) { p.Tokens += tokens }) }

// Branched tells that a text was forked or copied.
func (w *Watch) Branched() { w.Tell(func(p *Progress) { p.Branchings++ }) }

// Running tells how many samples are computed side by side.
func (w *Watch) Running(samples int) { w.Tell(func(p *Progress) { p.Samples = samples }) }
