// Package kseq drafts several independent chains of tokens from a second model, and accepts a draft where any chain
// has it (SpecTr, Sun et al. 2023).
//
// Each chain is drawn token by token from the draft model's processed distributions; chains that begin with the same
// tokens share these rows. The rule [verify.KSEQ] tests the draws behind a token one after the other against one
// bound.
package kseq

import (
	"context"
	"fmt"

	"grove/method"
	"grove/method/grow"
	"grove/verify"
)

// The size of the drafts.
const (
	chains = 3
	length = 3 // tokens of a chain
)

var shape = grow.Shape{Draw: grow.Independent, Ranks: []int{chains}, Beam: chains, Depth: length}

func init() {
	method.Register(method.Info{
		Name: "kseq", Paper: "SpecTr: K-SEQ, independent chains of a draft model, 2023", Kind: method.KindModel,
		Grade: method.SameDistribution, Rule: verify.KSEQ, Brings: verify.Needs{Distributions: true, Samples: true},
		Needs: "a draft model with the same vocabulary", Passes: true,
		Meets: meets,
		Open:  func(e method.Env) (method.Method, error) { return &kseq{shape, e, grow.NewTrim(e)}, nil },
	})
}

// meets returns an error where there is no draft model, or one of another vocabulary: a draw must be a token of the target.
func meets(e method.Env) error {
	switch {
	case e.Draft == nil:
		return method.ErrNeeds
	case e.Words.Way() != method.SameVocabulary:
		return fmt.Errorf("%w: this one's vocabulary: %v", method.ErrNeeds, e.Words)
	}
	return nil
}

// kseq is a draft model with the shape of its trees.
type kseq struct {
	shape grow.Shape
	env   method.Env
	trim  *grow.Trim // nil: the whole vocabulary is drafted from
}

// NewDrafter implements [method.Method].
func (m *kseq) NewDrafter(method.Trunk) (method.Drafter, error) {
	b, err := grow.NewBranch(m.env, m.trim)
	if err != nil {
		return nil, err
	}
	return &drafter{branch: b, grower: grow.New(m.shape, b, b.Vocabulary(m.env.Vocabulary))}, nil
}

// drafter draws chains with a sequence of the draft model.
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
