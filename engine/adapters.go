package engine

import (
	"encoding/hex"
	"slices"

	"grove/adapters"
	"grove/forest"
	"grove/kv"
	"grove/text/token"
)

// adapted is a set of adapters that trunks with a slot use.
type adapted struct {
	*adapters.Set
	users int
}

// salt keeps what texts with the adapters teach apart from others.
func (t *Terms) salt() string {
	if t.Adapters == nil {
		return t.Salt
	}
	return "adapters\x00" + hex.EncodeToString(t.Adapters.Name[:]) + "\x00" + t.Salt
}

// adapted is the set as the cache knows it.
func (t *Terms) adapted() kv.Adapted {
	if t.Adapters == nil {
		return kv.Adapted{}
	}
	return kv.Adapted{Name: t.Adapters.Name, From: t.adaptFrom}
}

// activate finds the place in a text's first prompt from which its adapters work.
func (t *Terms) activate(ids []token.ID) {
	if t.Adapters == nil {
		return
	}
	from, ok := t.Adapters.From(ids)
	if t.adaptFrom = from; !ok {
		t.Adapters = nil
	}
}

// Adapt makes a set of adapters that of the texts that [Engine.States] and [Engine.Logits] compute; nil: none.
func (e *Engine) Adapt(a *adapters.Set) { e.own.Store(a) }

// hold gives a trunk that gets a slot the number of its set of adapters: one that the set has, or one that no trunk uses.
func (e *Engine) hold(t *trunk) {
	a := t.terms.Adapters
	if t.adapter = 0; a == nil {
		return
	}
	i := slices.IndexFunc(e.adapters, func(o adapted) bool { return o.users > 0 && o.Name == a.Name })
	if i < 0 {
		if i = slices.IndexFunc(e.adapters, func(o adapted) bool { return o.users == 0 }); i < 0 {
			i, e.adapters = len(e.adapters), append(e.adapters, adapted{})
		}
		e.adapters[i] = adapted{Set: a}
		e.exec.SetAdapters(i+1, a.Name, a.List)
	}
	e.adapters[i].users++
	t.adapter = i + 1
	e.cache.Adapt(t.seq, t.adapter, t.terms.adapted())
}

// unhold is told that a trunk has lost its slot. A set without users gives its memory free.
func (e *Engine) unhold(t *trunk) {
	if t.adapter == 0 {
		return
	}
	a := &e.adapters[t.adapter-1]
	if a.users--; a.users == 0 {
		e.exec.SetAdapters(t.adapter, a.Name, nil)
		a.Set = nil
	}
	t.adapter = 0
}

// adapt gives a row of a trunk the trunk's adapters, where they work.
func (e *Engine) adapt(t *trunk, r *forest.Row) {
	if t.adapter == 0 || r.Resume != forest.Trunk { // a resumed row has its node's
		return
	}
	if i, err := e.cache.Forest.Index(t.seq, r.Parent); err == nil && i+1 >= t.terms.adaptFrom {
		r.Adapter = t.adapter
	}
}
