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
