package resident

import (
	"errors"
	"fmt"

	"grove/internal/engine"
	"grove/internal/engine/speculate"
	"grove/internal/weights/gguf"
	"grove/method"
)

// Guide is a model beside the model that steers its answers, for a search that asks for one. It shares the pool.
type Guide struct {
	*Model
	// Same says that its tokens are the model's. Ids that are padding on one side do not make vocabularies differ.
	Same bool
}

// GuideInfo returns what each guide is, and the memory that their weights and caches can come to use.
func (m *Model) GuideInfo() (names []string, nBytes int) {
	for _, g := range m.Guides {
		names = append(names, g.String())
		nBytes += int(g.bytes())
	}
	return names, nBytes
}

// String names the guide and says whether it has the model's vocabulary.
func (g Guide) String() string {
	if g.Same {
		return g.Name() + ": same vocabulary"
	}
	return g.Name() + ": another vocabulary"
}

// guide is what a guide does.
const guide = "guide"

// readGuides reads the guides.
func (m *Model) readGuides(o Options) error {
	for _, path := range o.Guides {
		d, err := m.readModel(o, path, guide, m.Pool)
		if err != nil {
			return err
		}
		m.Guides = append(m.Guides, Guide{d, method.SameTokens(m.Tokenizer, d.Tokenizer)})
	}
	return nil
}

// runGuides makes the engines of the guides: for texts as long, and as many at a time, as the model's. A text of a guide belongs to one of
// the model, which has a slot already, so that any number may wait.
func (m *Model) runGuides(o Options) error {
	for i, d := range m.Guides {
		of := o
		if o.Memory > 0 {
			of.Memory = m.left(o) + uint64(d.Model.Model.Info().Bytes) // which are among those of m
		}
		of.Context, of.Queue = min(m.Engine.Context(), d.Model.Model.Info().Context), 1<<30
		if err := d.run(of, speculate.MemoryLeast, 0); err != nil {
			return gguf.InFile(o.Guides[i], err)
		}
		s, err := d.Engine.NewSequence(engine.Answer{})
		if err == nil {
			err = errors.Join(s.Close(), d.Engine.CheckSource("a guide's text has none"))
		}
		if err != nil {
			return &OptionError{Err: fmt.Errorf("grove: %s cannot %s %s: %w", d.Name(), guide, m.Name(), err)}
		}
	}
	return nil
}

// others returns the models beside the model: those that draft, and the guides.
func (m *Model) others() []*Model {
	all := m.beside()
	for _, g := range m.Guides {
		all = append(all, g.Model)
	}
	return all
}
