package engine

import (
	"context"
	"fmt"

	"grove/internal/engine/plan"
)

// Cost, and what it is made of; see package plan.
type (
	// Cost is the seconds of a step on this machine by their size.
	Cost = plan.Cost
	// Probe describes a step that is run for its time alone.
	Probe = plan.Probe
)

// Probe runs steps of one kind for their time alone; see [TimingProbe]. Errors: an [ErrEncoder], ctx's, the model's.
func (e *Engine) Probe(ctx context.Context, p Probe, times int) (seconds []float64, touched int, err error) {
	if err := e.CheckGenerates(); err != nil {
		return nil, 0, err
	}
	return TimingProbe(ctx, &e.steps, p, times)
}

// Tune measures the cost of steps, in less than three seconds for any model: it runs a window of layers,
// the next one each time, and scales to all. The engine then corrects its own copy by every step it
// runs.
func (e *Engine) Tune(ctx context.Context) (*Cost, error) {
	if err := e.CheckGenerates(); err != nil {
		return nil, err
	}
	c, err := Tune(ctx, &e.steps, e.Context(), plan.TuneBudget)
	if err != nil {
		return nil, fmt.Errorf("engine: tuning: %w", err)
	}
	return c, nil
}

// Cost returns what is known of the cost of steps as it stands, nil where nothing is. The caller owns it.
func (e *Engine) Cost() *Cost { return e.steps.Costs.Get() }

// CostPath names the file in the user's cache directory that keeps the cost of this engine's steps; see [TimingPath].
func (e *Engine) CostPath() (string, error) { return TimingPath(&e.steps, e.pool.Threads()) }

// SaveCost writes the cost as it stands now, corrections and all, to [Engine.CostPath].
func (e *Engine) SaveCost() (path string, err error) {
	if path, err = e.CostPath(); err != nil {
		return "", err
	}
	return path, e.steps.Costs.Save(path)
}

// ensureCost measures roughly where nothing is known or, with head, nothing of what a part of the head costs, which files of earlier
// versions lack. A model that fails here fails again where it is used, with a better reason; until then there is nothing to draft by.
func (e *Engine) ensureCost(ctx context.Context, head bool) error {
	if c := e.Cost(); c != nil && (!head || len(c.Part.X) > 0) {
		return nil
	}
	if _, err := Tune(ctx, &e.steps, e.Context(), plan.RoughBudget); err != nil {
		return ctx.Err()
	}
	_, _ = e.SaveCost() // where it cannot be kept, the next engine measures again
	return nil
}
