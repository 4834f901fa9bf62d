package resident

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"grove/internal/engine"
	"grove/method"
)

// Env returns what the model, and what is beside it, offers methods.
func (m *Model) Env() method.Env {
	env := method.Env{Vocabulary: m.Model.Info().Vocabulary, Target: m.Engine.Model(), VocabMap: m.VocabMap, DraftVocab: m.draftVocab, AcceptHead: m.acceptHead, Datastore: m.Datastore, Modules: m.modules()}
	if m.Draft != nil {
		env.Draft = m.Draft.Engine.Model()
	}
	if m.Middle != nil {
		env.Middle = m.Middle.Engine.Model()
	}
	return env
}

// Grade returns the grade of a list of methods with a rule of acceptance, or an [*OptionError] where the model cannot have them.
func (m *Model) Grade(methods, accept string) (method.Grade, error) {
	grade, err := method.GradeWith(methods, accept, m.Judge)
	if err != nil {
		return "", &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	if infos, auto, _ := method.Parse(methods); !auto {
		if err := method.Check(infos, m.Env()); err != nil {
			return "", &OptionError{Err: fmt.Errorf("grove: %w", err)}
		}
	}
	return grade, nil
}

// draftings opens methods when they are first asked for, once for each combination.
type draftings struct {
	eager  bool
	forget bool

	mu   sync.Mutex
	open map[string]*engine.Drafting
}

// Drafting returns the methods that a list stands for, opened; nil for plain decoding. It opens each combination once.
func (m *Model) Drafting(ctx context.Context, list string) (*engine.Drafting, error) {
	infos, auto, err := method.Parse(list)
	if err != nil || len(infos) == 0 {
		return nil, err
	}
	list = method.Name(infos, auto)
	m.methods.mu.Lock()
	defer m.methods.mu.Unlock()
	if d, ok := m.methods.open[list]; ok {
		return d, nil
	}
	env := m.Env()
	if auto {
		infos = slices.DeleteFunc(infos, func(i method.Info) bool { return i.Unmet(env) != nil })
	}
	d, err := m.Engine.OpenDrafting(ctx, infos, env)
	if err != nil {
		return nil, err
	}
	if m.methods.eager {
		d.Eager()
	}
	if !m.methods.forget {
		d.Load()
	}
	if m.methods.open == nil {
		m.methods.open = map[string]*engine.Drafting{}
	}
	m.methods.open[list] = d
	return d, nil
}

// save keeps what the methods have learned. Where it cannot be kept, they learn it again.
func (d *draftings) save() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forget {
		return
	}
	for _, opened := range d.open {
		_ = opened.Save()
	}
}
