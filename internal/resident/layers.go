package resident

import (
	"context"
	"fmt"

	"grove/internal/engine/plan"
	"grove/internal/engine/speculate"
	"grove/method"
	"grove/method/layers"
)

// LayerSet describes the layers that [Model.SearchLayers] found.
type LayerSet struct {
	Path   string  `json:"path"`   // of the file that keeps the set
	Layers string  `json:"layers"` // to pass over, as the method's option skip names them
	Share  float64 `json:"share"`  // of drafts that are accepted, each behind the text itself
	Depth  int     `json:"depth"`  // drafts of the chain that is the fastest
	Speed  float64 `json:"speed"`  // of such chains, as the cost of steps predicts it, by that of plain decoding
}

// mostTrials bounds the trials of a search.
const mostTrials = 10_000

// searchDepth is the number of tokens before the steps by whose cost sets are compared.
const searchDepth = 256

// SearchLayers searches the layers that the method draft-verify passes over, in so many trials of 32 tokens, and keeps the set: the method, opened
// later, begins with it. Errors: an [*OptionError] for trials out of range and for a model of fewer than 3 layers; those of [layers.Find], of
// measuring the cost of steps where it is not known, and of a file that cannot be written.
func (m *Model) SearchLayers(ctx context.Context, trials int, told func(done, all int)) (s LayerSet, err error) {
	e := m.Engine
	size := e.Model().Size()
	if trials < 1 || trials > mostTrials {
		return s, &OptionError{Err: fmt.Errorf("grove: searching layers in %d trials; it must be from 1 to %d", trials, mostTrials)}
	}
	if size.Layers < 3 {
		return s, &OptionError{Err: fmt.Errorf("grove: searching layers to pass over: the model has %d; it must have at least 3", size.Layers)}
	}
	if s.Path, err = e.LearnedPath(); err != nil {
		return s, fmt.Errorf("grove: %w", err)
	}
	info, err := method.Find("draft-verify")
	if err != nil {
		return s, fmt.Errorf("grove: %w", err)
	}
	cost := e.Cost()
	if cost == nil {
		if cost, err = e.Tune(ctx); err != nil {
			return s, err
		}
	}
	steps := &plan.Planner{Layers: size.Layers}
	steps.Begin(cost, searchDepth)
	found, err := layers.Find(ctx, e.Model(), layers.Model{Steps: steps, Layers: size.Layers}, m.Tokenizer.BOS(), trials, told)
	if err != nil {
		return s, err
	}
	s = LayerSet{s.Path, layers.Format(found.Set), found.Share, found.Depth, found.Speed}
	return s, speculate.Prime(s.Path, []method.Info{info}, m.Env(), layers.Record(size.Layers, found.Set))
}
