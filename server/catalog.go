// catalog.go is the models of this machine, as a server opens them: each by the name that package find gives it.

package server

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"grove"
	"grove/internal/weights/find"
	"grove/internal/weights/pull"
	"grove/server/serving"
)

// Catalog implements [serving.Catalog]. It reads the places of the store anew for each question, one at a time.
type Catalog struct {
	Store *find.Store
	// Open opens a model in memory bytes for weights and cache; 0: as many as the machine has.
	Open func(m find.Model, memory uint64) (*grove.Model, error)

	mu sync.Mutex
}

// Entries lists the models.
func (c *Catalog) Entries() (all []serving.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	models, _ := c.Store.List() // what cannot be read is not listed; grove list says why
	for _, m := range models {
		all = append(all, c.source(m))
	}
	return all
}

// Entry returns the model of a name: as listed, a part of that which fits no other as well, or a name that can be pulled. Paths are
// no names.
func (c *Catalog) Entry(name string) (s serving.Entry, found bool) {
	if name == "" || filepath.IsAbs(name) || strings.HasPrefix(name, ".") {
		return s, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.Store.Named(name)
	if ref, err := pull.Parse(name); len(all) == 0 && err == nil {
		all = c.Store.Named(ref.Local())
	}
	if len(all) != 1 {
		return s, false
	}
	return c.source(all[0]), true
}

func (c *Catalog) source(m find.Model) serving.Entry {
	return serving.Entry{Name: m.Name, Path: m.Path, Open: func(_ context.Context, memory uint64) (*grove.Model, error) {
		return c.Open(m, memory)
	}}
}
