package adapters

import (
	"errors"
	"slices"
)

// Restore makes the open adapters those of a list of [Registry.All], with their ids and scales: that of a model that was closed and is open again. Those that are
// not on the list are closed. Errors are those of [Registry.Load], of the adapters that cannot be opened; the others are.
func (r *Registry) Restore(all []Adapter) (failed error) {
	for _, a := range all {
		if r.has(a) {
			continue
		}
		e, err := r.pack(File{Path: a.Path, Name: a.Name, Scale: a.Scale})
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		e.ID = a.ID
		r.mu.Lock()
		r.open = append(r.open, e)
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = slices.DeleteFunc(r.open, func(e entry) bool { return !slices.ContainsFunc(all, e.is) })
	for i := range r.open {
		r.open[i].Scale = all[slices.IndexFunc(all, r.open[i].is)].Scale
		r.next = max(r.next, r.open[i].ID+1)
	}
	slices.SortFunc(r.open, func(a, b entry) int { return a.ID - b.ID })
	r.sets = nil
	return failed
}

// has reports whether an adapter is open.
func (r *Registry) has(a Adapter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.open, func(e entry) bool { return e.is(a) })
}

// is reports whether an open adapter is one of a list.
func (e entry) is(a Adapter) bool { return e.ID == a.ID && e.Name == a.Name && e.Path == a.Path }
