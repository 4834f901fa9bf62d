// Package kangaroo drafts with the target's first layers and a trained adapter behind them, and lets the verifying step run the other layers alone (Kangaroo, Liu
// et al. 2024).
//
// It exits twice: the layers early, and the drafting behind the first draft that is not likely enough. The adapter is attention without a feed-forward
// block, and the target's head gives the logits.
package kangaroo

import (
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// family is the modules with an adapter.
var family = module.Family{Name: "kangaroo"}

// options are what a user may choose; the usual ones are the paper's.
var options = []method.Option{
	{Name: "least", Is: "P, the probability of a draft behind which drafting goes on", Usual: 60, Least: 0, Most: 100, Hundredths: true},
	{Name: "depth", Is: "N, the drafts of a chain", Usual: 6, Least: 1, Most: 25},
}

func init() {
	method.Register(family.Info(method.Info{
		Name: family.Name, Paper: "Kangaroo: double early exiting with an adapter, 2024", RunsRows: true, Auto: true, CheckNeeds: meets,
	}).Takes(options, open))
}

// meets returns an error where there is no module, or no target whose layers could draft.
func meets(e method.Env) error {
	if err := family.Meets(e); err != nil {
		return err
	}
	if e.Target == nil {
		return method.ErrOnRecord
	}
	return nil
}

// open prepares an adapter with options.
func open(e method.Env, n []int) (method.Method, error) {
	return &kangaroo{e.Module(family.Name), e.Target.Size(), n[0], n[1]}, nil
}

// kangaroo is an adapter with the target's sizes.
type kangaroo struct {
	module *method.Module
	target method.Size
	least  int // in hundredths
	depth  int
}

// NewDrafter implements [method.Method].
func (m *kangaroo) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, method.ErrOnRecord
	}
	shape := grow.Shape{Ranks: []int{1}, Beam: 1, Depth: m.depth, Spine: true, Least: float32(m.least) / 100}
	return module.NewDrafter(shape, module.NewAdapter(own, m.target, m.module), m.module, m.target.Vocabulary), nil
}
