package resident

import (
	"errors"

	"grove/internal/engine/adapters"
	"grove/internal/kv"
	"grove/internal/mmap"
)

// LoadAdapter opens an adapter while the model is in use. Errors: engine.ErrClosed, an [*OptionError], [adapters.ErrAdapter], [kv.ErrMemory].
func (m *Model) LoadAdapter(f adapters.File) (a adapters.Adapter, err error) {
	if err := m.Engine.Closed(); err != nil {
		return adapters.Adapter{}, err
	}
	err = mmap.Catch(func() error {
		a, err = m.Adapters.Load(f)
		return err
	})
	if err != nil {
		return adapters.Adapter{}, adapterError(err)
	}
	return a, m.adapt()
}

// UnloadAdapter closes an adapter by its name. Answers that use it go on with it. Errors: [adapters.ErrAdapter].
func (m *Model) UnloadAdapter(name string) error {
	if err := m.Adapters.Unload(name); err != nil {
		return err
	}
	return m.adapt()
}

// ScaleAdapters sets the scales that texts without adapters of their own give the open adapters. Errors: [adapters.ErrAdapter], an
// [*OptionError]; nothing has changed then.
func (m *Model) ScaleAdapters(scales []adapters.Scale) error {
	if err := m.Adapters.Scale(scales); err != nil {
		return adapterError(err)
	}
	return m.adapt()
}

// AdapterSet returns the set of the adapters that a text asks for, nil for none. scales nil: all, with their own scales. Errors are those of [Model.ScaleAdapters].
func (m *Model) AdapterSet(scales []adapters.Scale) (*adapters.Set, error) {
	set, err := m.Adapters.Set(scales)
	return set, adapterError(err)
}

// adapt makes the adapters' own scales those of embeddings and of texts that are scored.
func (m *Model) adapt() error {
	set, err := m.AdapterSet(nil)
	if err == nil {
		m.Engine.Adapt(set)
	}
	return err
}

// adapterError is an error of adapters as an [*OptionError], where no other kind of error fits.
func adapterError(err error) error {
	if err == nil || errors.Is(err, adapters.ErrAdapter) || errors.Is(err, kv.ErrMemory) {
		return err
	}
	return &OptionError{Err: err}
}
