package module

import (
	"context"

	"grove/internal/sample"
	"grove/method"
	"grove/method/grow"
)

// Following is the part of a source that does not depend on what is drafted: it follows a text, by the features that come with its updates. It is for one goroutine.
type Following interface {
	// Begin begins a text, none of whose features are known.
	Begin(*method.History) error
	// Committed takes the features of an update of the text.
	Committed(method.Update) error
	// Memory returns what passes of so many rows take, and Held the room that was made.
	Memory(rows int) method.Memory
	Held() method.Memory
	// Ran counts the passes, see [method.Counter].
	Ran() method.Ran
	// Close gives what is open back.
	Close() error
}

// Growing is a source of logits behind the text and behind each draft.
type Growing interface {
	grow.LogitSource
	Following
	// BeginRound begins the tree of a round behind the text. It returns false where nothing can be drafted.
	BeginRound(*method.Tree) bool
}

// Drafter grows trees of one shape with a source of a draft module. It is a complete [method.Drafter].
type Drafter struct {
	Growing
	wants  method.Wants
	shape  grow.Shape
	grower *grow.Grower
	text   *method.History
	size   method.Size
	err    error // of an update
}

// NewDrafter returns a drafter of a shape, with a source of a module, for the vocabulary of a target.
func NewDrafter(s grow.Shape, source Growing, m *method.Module, vocabulary int) *Drafter {
	return &Drafter{Growing: source, wants: m.Wants(), shape: s, grower: grow.New(s, source, vocabulary), size: m.Size()}
}

// Wants implements [method.Wanter].
func (d *Drafter) Wants() method.Wants { return d.wants }

// Begin implements [method.Drafter].
func (d *Drafter) Begin(h *method.History) error {
	d.text, d.err = h, nil
	if err := d.Growing.Begin(h); err != nil {
		return err
	}
	return d.grower.Begin(h.Noise)
}

// Committed implements [method.Drafter].
func (d *Drafter) Committed(r method.Update) {
	d.err = d.Growing.Committed(r)
	d.grower.Committed(r.IDs)
}

// Draft implements [method.Drafter].
func (d *Drafter) Draft(ctx context.Context, t *method.Tree) error {
	if d.err != nil || !d.BeginRound(t) {
		return d.err
	}
	return d.grower.Grow(ctx, t, len(d.text.IDs())-d.text.SourceLen)
}

// MemoryFor implements [method.Sized].
func (d *Drafter) MemoryFor(drafts int, p sample.Params) method.Memory {
	r := d.Memory(max(1, min(d.shape.Beam, drafts)))
	r.Distributions += d.grower.MemoryFor(drafts, p, d.size).Distributions
	return r
}

// Held implements [method.Sized].
func (d *Drafter) Held() method.Memory {
	r := d.Growing.Held()
	r.Distributions += d.grower.Held().Distributions
	return r
}
