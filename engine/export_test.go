package engine

import "grove/kv"

// SetCost replaces what the engine knows of its steps.
func (e *Engine) SetCost(c *Cost) { e.setCost(c) }

// Held returns the cache's pages in use and live rows, and the open sequences.
func (e *Engine) Held() (u kv.Usage, live, open int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cache.Usage(), e.cache.Forest.AllLive(), e.seats
}

// Aligned returns what the cache holds of a sequence: the trunk's tokens, and the tokens taken of the last round, of
// which the trunk will be made.
func (s *Sequence) Aligned() (trunk, taken, live int) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.e.cache.Forest.Len(s.seq), s.taken, s.e.cache.Forest.Live(s.seq)
}
