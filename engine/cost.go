package engine

import (
	"context"
	"fmt"
	"time"

	"grove/compute"
	"grove/engine/plan"
	"grove/internal/cachefile"
	"grove/internal/kernel"
	"grove/internal/machine"
)

// Cost, and what it is made of; see package plan.
type (
	// Cost is the seconds of a step on this machine by their size.
	Cost = plan.Cost
	// Probe describes a step that is run for its time alone.
	Probe = plan.Probe
)

// Tune measures the cost of steps, in less than three seconds for any model: it runs a window of layers,
// the next one each time, and scales to all. The engine then corrects its own copy by every step it
// runs.
func (e *Engine) Tune(ctx context.Context) (*Cost, error) {
	c, err := e.tune(ctx, plan.TuneBudget)
	if err != nil {
		return nil, fmt.Errorf("engine: tuning: %w", err)
	}
	return c, nil
}

// Cost returns what is known of the cost of steps as it stands, nil where nothing is. The caller owns it.
func (e *Engine) Cost() *Cost { return e.steps.Costs.Get() }

// CostPath names the file in the user's cache directory that keeps the cost of this engine's steps: by
// the model's form and a sample of its weights, the processor, the threads, the kernels and the cache type.
func (e *Engine) CostPath() (string, error) {
	return cachefile.Path("cost", e.steps.Model.Info().SampleDigest, machine.CPU(), e.pool.Threads(), kernel.Implementation(), compute.NumericsVersion, e.steps.Cache.Config().Type)
}

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
	if _, err := e.tune(ctx, plan.RoughBudget); err != nil {
		return ctx.Err()
	}
	_, _ = e.SaveCost() // where it cannot be kept, the next engine measures again
	return nil
}

func (e *Engine) tune(ctx context.Context, budget time.Duration) (*Cost, error) {
	info := e.steps.Model.Info()
	z := plan.Sizes{Tokens: e.vocab, Layers: e.steps.Cache.Forest.Layers(), Rows: min(e.Context(), e.steps.Chunk), Context: e.Context()}
	// An expert is read at the rate of a step of one row, which is the rate of memory.
	read := info.Bytes - info.IdleBytes - info.ExpertBytes*(info.Experts-info.ExpertsPerToken)*info.Mixtures
	z.Expert = float64(info.ExpertBytes) / float64(max(1, read))
	c, err := plan.Tune(z, budget, func(p Probe) (float64, int, error) {
		seconds, touched, err := e.Probe(ctx, p, 1)
		if err != nil {
			return 0, 0, err
		}
		return seconds[0], touched, nil
	})
	e.steps.Lock()
	e.steps.Exec.DropOutputs() // those of steps that were measured are larger than those of rounds
	e.steps.Unlock()
	if err != nil {
		return nil, err
	}
	e.steps.Costs.Set(c)
	return c, nil
}
