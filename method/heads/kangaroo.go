// kangaroo.go drafts with the target's first layers and a trained adapter behind them, and lets the verifying step run the other layers alone (Kangaroo, Liu
// et al. 2024).
//
// It exits twice: the layers early, and the drafting behind the first draft that is not likely enough. The adapter is attention without a feed-forward
// block, and the target's head gives the logits.

package heads

import (
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// kangarooFamily is the modules with an adapter.
var kangarooFamily = module.Family{Name: "kangaroo"}

func init() {
	method.Register(kangarooFamily.Info(method.Info{
		Name: kangarooFamily.Name, Paper: "Kangaroo: double early exiting with an adapter, 2024", RunsRows: true, Auto: true, CheckNeeds: kangarooFamily.MeetsOnTrunk,
	}).Takes(module.Chain, openKangaroo))
}

// openKangaroo prepares an adapter with options.
func openKangaroo(e method.Env, n []int) (method.Method, error) {
	return &kangaroo{e.Module(kangarooFamily.Name), e.Target.Size(), module.ChainShape(n)}, nil
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
