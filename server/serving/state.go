package serving

import (
	"cmp"
	"slices"
	"time"

	"grove"
	"grove/server/wire"
)

// State describes a model without opening it.
type State struct {
	Name   string
	Path   string     // as of its [Entry]
	Status string     // loaded, loading or unloaded
	Model  *OpenModel // nil: it is not open; its Info may be read
	Closes time.Time  // when it is closed unless it is used again; zero: never, or it is in use
	Alias  *Alias     // the name that a client made; nil: it is the model's own
}

// States returns the models: those that were added, those of the catalog that were used, then its others, and the names that clients made.
func (p *Pool) States() []State {
	all := p.states()
	if p.config.Catalog != nil {
		for _, s := range p.config.Catalog.Entries() {
			if !slices.ContainsFunc(all, func(o State) bool { return o.Name == s.Name }) {
				all = append(all, State{Name: s.Name, Path: s.Path, Status: "unloaded"})
			}
		}
	}
	models := len(all)
	for _, a := range p.names.All() {
		if i := slices.IndexFunc(all[:models], func(s State) bool { return s.Name == a.Of }); i >= 0 && p.alias(a.Name) != nil {
			all = append(all, all[i].as(a))
		}
	}
	return all
}

// as returns the state of a model under a name that a client gave it; nil: under its own.
func (s State) as(a *Alias) State {
	if a != nil {
		s.Name, s.Model, s.Alias = a.Name, s.Model.as(a), a
	}
	return s
}

// Adapter returns the base of an adapter that requests name as their model, and what they ask for by that. Any other name is
// returned as it is. Adapters of models that were never open have no name.
func (p *Pool) Adapter(name string) (model string, adapter []grove.AdapterScale) {
	if e, _ := p.known(name); e != nil {
		return name, nil
	}
	for _, e := range p.all() {
		for _, a := range p.adaptersOf(e) {
			if a.Name == name {
				return e.Name, []grove.AdapterScale{{ID: a.ID, Scale: cmp.Or(a.Scale, 1)}}
			}
		}
	}
	return name, nil
}

// adaptersOf returns the adapters that a model has, or will have when it is opened again.
func (p *Pool) adaptersOf(e *entry) []grove.Adapter {
	p.mu.Lock()
	h, closed := e.model, e.adapters
	p.mu.Unlock()
	if h == nil {
		return closed
	}
	return h.Model.Adapters()
}

// Open returns the models that are open. It does not read the catalog.
func (p *Pool) Open() []State {
	return slices.DeleteFunc(p.states(), func(s State) bool { return s.Model == nil })
}

func (p *Pool) states() (all []State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		s := State{Name: e.Name, Path: e.Path, Status: "unloaded", Model: e.model}
		switch {
		case e.model != nil:
			s.Status = "loaded"
			if idle := p.idle(e); idle >= 0 && e.users == 0 {
				s.Closes = e.last.Add(idle)
			}
		case e.loading != nil:
			s.Status = "loading"
		}
		all = append(all, s)
	}
	return all
}

// State returns the model of a name.
func (p *Pool) State(name string) (State, error) {
	e, err := p.find(name)
	if err != nil {
		return State{}, err
	}
	for _, s := range p.states() {
		if s.Name == e.Name {
			return s.as(p.alias(name)), nil
		}
	}
	return State{}, wire.ErrInternal
}
