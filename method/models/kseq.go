// kseq.go drafts several independent chains of tokens from a second model, and accepts a draft where any chain
// has it (SpecTr, Sun et al. 2023).
//
// Each chain is drawn token by token from the draft model's processed distributions; chains that begin with the same
// tokens share these rows. The rule [verify.KSEQ] tests the draws behind a token one after the other against one
// bound.

package models

import (
	"grove/internal/verify"
	"grove/method"
	"grove/method/grow"
)

// The size of the drafts.
const (
	chains     = 3
	kseqLength = 3 // tokens of a chain
)

var kseqShape = grow.Shape{Draw: grow.WithReplacement, Ranks: []int{chains}, Beam: chains, Depth: kseqLength}

func init() {
	method.Register(method.Info{
		Name: "kseq", Paper: "SpecTr: K-SEQ, independent chains of a draft model, 2023", Kind: method.KindModel,
		Grade: method.SameDistribution, Rule: verify.KSEQ, Provides: verify.Properties{Distributions: true, WithReplacement: true},
		Needs: "a draft model with the same vocabulary", RunsRows: true,
		CheckNeeds: func(e method.Env) error { return grow.MeetsDraft(e, true) },
		Open:       func(e method.Env) (method.Method, error) { return &kseq{kseqShape, e, grow.NewTrim(e)}, nil },
	})
}

// kseq drafts with a draft model.
type kseq struct {
	shape grow.Shape
	env   method.Env
	trim  *grow.Trim // nil: the whole vocabulary is drafted from
}

// NewDrafter implements [method.Method].
func (m *kseq) NewDrafter(method.Trunk) (method.Drafter, error) {
	b := grow.NewBranch(m.env, m.trim)
	return grow.NewDrafter(m.shape, b, m.env), nil
}
