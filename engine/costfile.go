package engine

import (
	"encoding/json"
	"fmt"

	"grove/compute"
	"grove/internal/cachefile"
	"grove/internal/kernel"
	"grove/internal/machine"
)

// CostPath names the file in the user's cache directory that keeps the cost of this engine's steps: by
// the model's weights, the processor, the threads, the kernels and the cache type.
func (e *Engine) CostPath() (string, error) {
	return cachefile.Path("cost", e.model.Info().Identity, machine.CPU(), e.threads, kernel.Implementation(), compute.NumericsVersion, e.cache.Config().Type)
}

// SaveCost writes the cost as it stands now, corrections and all, to [Engine.CostPath]; readers find the old
// file or all of the new.
func (e *Engine) SaveCost() (path string, err error) {
	path, err = e.CostPath()
	if err != nil {
		return "", err
	}
	e.costs.Lock()
	text, err := json.MarshalIndent(e.costs.cost, "", "\t")
	e.costs.Unlock()
	if err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	return path, cachefile.Write(path, text)
}

// loadCost takes over what an earlier run stored. A file that is missing or makes no sense counts as none:
// the cost is a measurement, and can be made again.
func (e *Engine) loadCost() {
	path, err := e.CostPath()
	if err != nil {
		return
	}
	c := new(Cost)
	if json.Unmarshal(cachefile.Read(path, 1<<16), c) == nil && c.Valid() {
		e.setCost(c)
	}
}
