package engine

import "grove/adapters"

// Adapt makes a set of adapters that of the texts that [Engine.States] and [Engine.Logits] compute; nil: none.
func (e *Engine) Adapt(a *adapters.Set) { e.own.Store(a) }
