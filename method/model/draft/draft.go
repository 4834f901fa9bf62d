// Package draft drafts by a second, smaller model: it grows a tree behind the text level by level, as long as the
// drafts are likely enough to pay (speculative decoding, Leviathan et al. 2023; trees by path probability, OPT-Tree,
// Wang et al. 2024; stopping by expected worth, SpecDec++, Huang et al. 2024).
//
// Where tokens are drawn at random, the methods of the grade exact share the noise of the target's draw: their drafts
// are the tokens that would be drawn from the draft model's logits (Gumbel coupling, Daliri et al. 2024). The others
// draw from the draft model's distributions.
package draft

import (
	"context"

	"grove/method"
	"grove/method/grow"
)

// drafter grows trees with a sequence of the draft model.
type drafter struct {
	history *method.History
	branch  *grow.Branch
	grower  *grow.Grower
}

// Begin implements [method.Drafter].
func (d *drafter) Begin(h *method.History) error {
	d.history = h
	if err := d.branch.Begin(h); err != nil {
		return err
	}
	d.branch.Committed(h.IDs(), true)
	return d.grower.Begin(h.Noise)
}

// Committed implements [method.Drafter].
func (d *drafter) Committed(r method.Run) { d.branch.Committed(r.IDs, false) }

// Draft implements [method.Drafter].
func (d *drafter) Draft(ctx context.Context, t *method.Tree) error {
	return d.grower.Grow(ctx, t, len(d.history.IDs()))
}

// Close implements [method.Closer].
func (d *drafter) Close() error { return d.branch.Close() }
