package engine

// SetCost replaces what the engine knows of its steps.
func (e *Engine) SetCost(c *Cost) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cost = c
}
