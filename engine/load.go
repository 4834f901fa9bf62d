package engine

import "grove/engine/step"

// Load is what an engine does at a moment, for monitoring.
type Load = step.Load

// Load returns what the engine does. It does not wait for a step.
func (e *Engine) Load() Load {
	waiting := e.steps.Waiting()
	now := e.steps.Load.Now()
	now.Waiting = waiting
	return now
}
