package step

import (
	"encoding/hex"
	"slices"

	"grove/internal/engine/adapters"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/text/token"
)

// adapted is a set of adapters that trunks with a slot use.
type adapted struct {
	*adapters.Set
	users int
}

// LearnsWith keeps what texts with the adapters teach apart from others.
func (t *Terms) LearnsWith() string {
	if t.Adapters == nil {
		return t.Salt
	}
	return "adapters\x00" + hex.EncodeToString(t.Adapters.Name[:]) + "\x00" + t.Salt
}

// Adapted is the set and the blocks as the cache knows them.
func (t *Terms) Adapted() kv.Adapted {
	if t.Adapters == nil {
		return kv.Adapted{Block: t.Block}
	}
	return kv.Adapted{Name: t.Adapters.Name, From: t.adaptFrom, Block: t.Block}
}

// Activate finds the place in a text's first prompt from which its adapters work.
func (t *Terms) Activate(ids []token.ID) {
	if t.Adapters == nil {
		return
	}
	from, ok := t.Adapters.From(ids)
	if t.adaptFrom = from; !ok {
		t.Adapters = nil
	}
}

// hold gives a trunk that gets a slot the number of its set of adapters: one that the set has, or one that no trunk uses.
func (m *Maker) hold(t *Trunk) {
	a := t.Terms.Adapters
	if t.adapter = 0; a == nil {
		m.Cache.Adapt(t.Seq, 0, t.Terms.Adapted())
		return
	}
	i := slices.IndexFunc(m.adapters, func(o adapted) bool { return o.users > 0 && o.Name == a.Name })
	if i < 0 {
		if i = slices.IndexFunc(m.adapters, func(o adapted) bool { return o.users == 0 }); i < 0 {
			i, m.adapters = len(m.adapters), append(m.adapters, adapted{})
		}
		m.adapters[i] = adapted{Set: a}
		m.Exec.SetAdapters(i+1, a.Name, a.List)
	}
	m.adapters[i].users++
	t.adapter = i + 1
	m.Cache.Adapt(t.Seq, t.adapter, t.Terms.Adapted())
}

// unhold is told that a trunk has lost its slot. A set without users gives its memory free.
func (m *Maker) unhold(t *Trunk) {
	if t.adapter == 0 {
		return
	}
	a := &m.adapters[t.adapter-1]
	if a.users--; a.users == 0 {
		m.Exec.SetAdapters(t.adapter, a.Name, nil)
		a.Set = nil
	}
	t.adapter = 0
}

// Accelerate gives a set of adapters a number that it keeps, by which rows of drafters have it.
func (m *Maker) Accelerate(a *adapters.Set) int {
	m.Lock()
	defer m.Unlock()
	m.adapters = append(m.adapters, adapted{Set: a, users: 1})
	n := len(m.adapters)
	m.Exec.SetAdapters(n, a.Name, a.List)
	return n
}

// adapt gives a row of a trunk the trunk's adapters, where they work, in place of those that the row has.
func (m *Maker) adapt(t *Trunk, r *forest.Row) {
	if t.adapter == 0 || r.Resume != forest.Trunk { // a resumed row has its node's
		return
	}
	if i, err := m.Cache.Forest.Index(t.Seq, r.Parent); err == nil && i+1 >= t.Terms.adaptFrom {
		r.Adapter = t.adapter
	}
}
