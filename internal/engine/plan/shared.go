package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"grove/internal/fileio"
)

// SharedCost holds the cost of steps, which steps correct while others read it. It is safe for concurrent
// use; its lock is held for moments. The zero value knows nothing.
type SharedCost struct {
	mu   sync.Mutex
	cost *Cost
}

// With calls f with the cost, nil where nothing is known; f does not keep it.
func (k *SharedCost) With(f func(c *Cost)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k.cost)
}

// Get returns a copy of the cost as it stands, nil where nothing is known.
func (k *SharedCost) Get() *Cost {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cost.clone()
}

// Set replaces what is known by a copy of c.
func (k *SharedCost) Set(c *Cost) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cost = c.clone()
}

// Observe corrects what is known by a step.
func (k *SharedCost) Observe(s StepSize, seconds float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cost != nil {
		k.cost.Observe(s, seconds)
	}
}

func (c *Cost) clone() *Cost {
	if c == nil {
		return nil
	}
	own := *c
	own.Correction = slices.Clone(c.Correction)
	return &own
}

// Save writes the cost as it stands to a file; readers find the old file or all of the new.
func (k *SharedCost) Save(path string) error {
	text, err := json.MarshalIndent(k.Get(), "", "\t")
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return fileio.WriteCache(path, text)
}

// Load takes over what Save wrote. A file that is missing or makes no sense counts as none:
// the cost is a measurement, and can be made again.
func (k *SharedCost) Load(path string) {
	c := new(Cost)
	if json.Unmarshal(fileio.ReadCache(path, 1<<16), c) == nil && c.Valid() {
		k.Set(c)
	}
}
