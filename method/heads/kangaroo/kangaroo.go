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

func init() {
	method.Register(family.Info(method.Info{
		Name: family.Name, Paper: "Kangaroo: double early exiting with an adapter, 2024", RunsRows: true, Auto: true, CheckNeeds: family.MeetsOnTrunk,
	}).Takes(module.Chain, open))
}

// open prepares an adapter with options.
func open(e method.Env, n []int) (method.Method, error) {
	return &kangaroo{e.Module(family.Name), e.Target.Size(), module.ChainShape(n)}, nil
}

// kangaroo is an adapter with the target's sizes.
type kangaroo struct {
	module *method.Module
	target method.Size
	shape  grow.Shape
}

// NewDrafter implements [method.Method].
func (m *kangaroo) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, method.ErrOnRecord
	}
	return module.NewDrafter(m.shape, module.NewAdapter(own, m.target, m.module), m.module, m.target.Vocabulary), nil
}
