package engine

import "grove/kv"

// SetCost replaces what the engine knows of its steps.
func (e *Engine) SetCost(c *Cost) { e.costs.Set(c) }

// Held returns the cache's pages in use and live rows, and the open sequences.
func (e *Engine) Held() (u kv.Usage, live, open int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cache.Usage(), e.cache.Forest.AllLive(), len(e.admitted)
}

// Aligned returns what the cache holds of a sequence: the trunk's tokens, and the tokens taken of the last round, of
// which the trunk will be made.
func (s *Sequence) Aligned() (trunk, taken, live int) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.e.cache.Forest.Len(s.seq), s.round.taken, s.e.cache.Forest.Live(s.seq)
}
