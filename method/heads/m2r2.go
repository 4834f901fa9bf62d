// m2r2.go drafts with an accelerated stream beside the target's first layers, and lets the verifying step run the other layers alone (M2R2: Mixture of
// Multi-Rate Residuals, 2025, as self-speculation).
//
// Of each token two rows run the first layers: its own, and one to whose products low-rank matrices add, which were trained to do in these layers what the target does in
// all. It reads the keys of the own rows. The target's head gives the logits of the accelerated rows. Without additions they are those of an early exit.

package heads

import (
	"fmt"

	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// m2r2Family is the modules of additions to the target's first layers.
var m2r2Family = module.Family{Name: "m2r2"}

func init() {
	method.Register(m2r2Family.Info(method.Info{
		Name: m2r2Family.Name, Paper: "M2R2: an accelerated stream beside the first layers, 2025", RunsRows: true, Auto: true, CheckNeeds: m2r2Family.MeetsOnTrunk,
	}).Takes(module.Chain, openM2r2))
}

// openM2r2 prepares additions with options.
func openM2r2(e method.Env, n []int) (method.Method, error) {
	m := e.Module(m2r2Family.Name)
	if m.Accelerated.Layers == 0 {
		return nil, fmt.Errorf("m2r2: %w: the heads add nothing", method.ErrNeeds)
	}
	return &m2r2{m.Accelerated, e.Target.Size(), module.ChainShape(n)}, nil
}

// m2r2 is the number of a set of adapters with the target's sizes.
type m2r2 struct {
	method.Accelerated
	size  method.Size
	shape grow.Shape
}

// NewDrafter implements [method.Method].
func (m *m2r2) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, method.ErrOnRecord
	}
	return grow.NewExitDrafter(grow.NewAccelerated(own, m.size, m.Layers, m.Adapter), m.shape, m.size.Vocabulary), nil
}
