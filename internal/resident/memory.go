package resident

import (
	"errors"
	"fmt"
	"sort"

	"grove/internal/engine"
	"grove/internal/engine/plan"
	"grove/internal/engine/speculate"
	"grove/method"
)

// fit decides how large drafting is, within the bound of its memory, and returns the bytes that the rounds of a text may take; 0: any.
func (m *Model) fit(o Options) (draftRoom int, err error) {
	m.drafting = m.largest(o)
	if o.DraftMemory == 0 {
		return 0, nil
	}
	if m.Model.Info().Embeds() {
		return 0, &OptionError{Err: errors.New("grove: a bound of draft memory for a model that gives embeddings and no text")}
	}
	size, room, err := m.fitTo(o, int(min(o.DraftMemory, mostMemory)))
	if err != nil {
		return 0, err
	}
	m.drafting = size
	return room, nil
}

// mostMemory is more than drafting ever takes.
const mostMemory = 1 << 44

// largest returns how large drafting is without a bound.
func (m *Model) largest(o Options) speculate.MemorySize {
	s := speculate.MemorySize{Drafts: plan.MaxDraft, Texts: o.Parallel, Context: speculate.MemoryPage}
	for _, d := range m.beside() {
		s.Context = max(s.Context, min(d.Model.Info().Context, engine.DefaultContext))
	}
	return s
}

// fitTo returns how large drafting is within a budget, and what that leaves for the rounds of a text.
func (m *Model) fitTo(o Options, budget int) (size speculate.MemorySize, draftRoom int, err error) {
	size, ok := speculate.MemoryFit(budget, m.largest(o), func(s speculate.MemorySize) int {
		if err == nil {
			var all speculate.MemoryBytes
			all, err = m.caches(o, s)
			return all.Total() + s.Texts*m.least(s.Drafts)
		}
		return budget
	})
	if err != nil {
		return size, 0, &OptionError{Err: err}
	}
	caches, err := m.caches(o, size)
	if !ok {
		caches, err = m.caches(o, speculate.MemoryLeast)
		return size, 0, &OptionError{Err: errors.Join(err, fmt.Errorf("grove: draft memory of %d bytes: a round of one draft needs %d", budget, caches.Total()+m.least(1)))}
	}
	return size, (budget - caches.Total()) / size.Texts, err
}

// caches returns what the models have for drafting of a size: the rows of drafts, and the caches of the models that draft.
func (m *Model) caches(o Options, s speculate.MemorySize) (b speculate.MemoryBytes, err error) {
	info := m.Model.Info()
	if _, b.Rows, err = engine.MemoryOf(info, o.engine(info, s, 0, 0)); err != nil {
		return b, err
	}
	for _, d := range m.beside() {
		info := d.Model.Info()
		all, _, err := engine.MemoryOf(info, o.forDrafts(d, s).engine(info, s, 0, 0))
		if err != nil {
			return b, err
		}
		b.Caches, b.States = b.Caches+all.Pages+all.Scratch, b.States+all.States
	}
	return b, nil
}

// forDrafts returns how the engine of a model beside the model is made.
func (o Options) forDrafts(d *Model, s speculate.MemorySize) Options {
	o.Context, o.Parallel = min(s.Context, d.Model.Info().Context), s.Texts
	return o
}

// least returns what the rounds of a text of so many drafts take at least.
func (m *Model) least(drafts int) int {
	var beside []method.Size
	for _, d := range m.beside() {
		beside = append(beside, engine.SizeOf(d.Model.Info(), 0))
	}
	return speculate.Least(drafts, engine.SizeOf(m.Model.Info(), 0), beside)
}

// DraftError returns the error of a text that was to draft: of methods whose rounds have no room, as an [*OptionError] with the least
// draft memory that would do.
func (m *Model) DraftError(err error) error {
	o := m.options
	var full *speculate.MemoryError
	if !errors.As(err, &full) {
		return err
	}
	enough := func(budget int) bool {
		_, room, err := m.fitTo(o, budget)
		return err == nil && room >= full.Need
	}
	low, high := int(o.DraftMemory), int(o.DraftMemory)
	for high < mostMemory && !enough(high) {
		low, high = high, 2*high
	}
	least := low + sort.Search(high-low, func(n int) bool { return enough(low + n) })
	return &OptionError{Err: fmt.Errorf("grove: method %s: draft memory of %d bytes is too small for a round of one draft of its kind; %d would do", full.Methods, o.DraftMemory, least)}
}

// DraftSize returns how large drafting is, and what it takes besides weights and the rounds of texts.
func (m *Model) DraftSize() (speculate.MemorySize, speculate.MemoryBytes) {
	b, _ := m.caches(m.options, m.drafting) // which have been checked
	return m.drafting, b
}

// HeldByModels returns what the models have allocated for drafting: what DraftSize says, and the logits of the largest steps so far.
func (m *Model) HeldByModels() (b speculate.MemoryBytes) {
	info := m.Model.Info()
	all, drafts, _ := engine.MemoryOf(info, m.options.engine(info, m.drafting, 0, 0))
	b.Rows = m.Engine.CacheMemory().Total() - (all.Total() - drafts)
	b.Logits = m.Engine.OutputBytes()
	for _, d := range m.beside() {
		c := d.Engine.CacheMemory()
		b.Caches, b.States, b.Logits = b.Caches+c.Pages+c.Scratch, b.States+c.States, b.Logits+d.Engine.OutputBytes()
	}
	return b
}
