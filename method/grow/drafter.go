package grow

import (
	"context"
	"fmt"

	"grove/method"
)

// Drafter grows trees of one shape with a sequence of the draft model. It is a complete [method.Drafter].
type Drafter struct {
	history *method.History
	branch  *Branch
	grower  *Grower
}

// NewDrafter returns a drafter for a branch, which it closes. Env is that of the method.
func NewDrafter(s Shape, b *Branch, e method.Env) *Drafter {
	b.Like.Want.State = s.State
	return &Drafter{branch: b, grower: New(s, b, b.Vocabulary(e.Vocabulary))}
}

// NewNestedDrafter is NewDrafter for a source that begins with a branch's first layers.
func NewNestedDrafter(s Shape, n *Nested, e method.Env) *Drafter {
	return &Drafter{branch: n.Branch, grower: New(s, n, n.Vocabulary(e.Vocabulary))}
}

// MeetsDraft returns an error where env has no draft model, or, where drafts are to be draws, one with another
// vocabulary: a draw must be a token of the target.
func MeetsDraft(e method.Env, draws bool) error {
	switch {
	case e.Draft == nil:
		return method.ErrNeeds
	case e.Draft.Size().Canvas != nil:
		return fmt.Errorf("%w that gives the next token; this one is of masked diffusion, with which deer drafts", method.ErrNeeds)
	case draws && e.VocabMap.Mapping() != method.SameVocabulary:
		return fmt.Errorf("%w; the draft model's vocabulary is another: %v", method.ErrNeeds, e.VocabMap)
	}
	return nil
}

// Begin implements [method.Drafter].
func (d *Drafter) Begin(h *method.History) error {
	d.history = h
	if err := d.branch.Begin(h); err != nil {
		return err
	}
	d.branch.Committed(h.IDs(), true)
	return d.grower.Begin(h.Noise)
}

// Committed implements [method.Drafter].
func (d *Drafter) Committed(r method.Update) {
	d.branch.Committed(r.IDs, false)
	d.grower.Committed(r.IDs)
}

// Draft implements [method.Drafter].
func (d *Drafter) Draft(ctx context.Context, t *method.Tree) error {
	return d.grower.Grow(ctx, t, len(d.history.IDs())-d.history.SourceLen)
}

// Branch returns the sequence of the draft model.
func (d *Drafter) Branch() *Branch { return d.branch }

// Close implements [method.Closer].
func (d *Drafter) Close() error { return d.branch.Close() }
