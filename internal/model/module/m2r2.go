package module

import (
	"grove/internal/forest"
	"grove/internal/model"
)

func init() { model.RegisterModule("m2r2", openM2R2) }

// openM2R2 opens low-rank matrices that add to the products of the target's first layers (M2R2, 2025): rows of the target with them are its accelerated stream.
//
// Keys of a file, behind its architecture: exit_layer, the number of these layers; scale, 1 where it is missing.
func openM2R2(l *model.Loader) model.Model {
	l.ModuleHyperparameters(1, false)
	m := &standing{info: l.Info(), lent: l.Lent()}
	exit := l.Count("exit_layer", 1, max(1, len(l.Target().Layers)-1))
	scale := l.RangeOr("scale", 1, -1e6, 1e6)
	m.info.Module = &forest.Module{Family: "m2r2"}
	if l.OK() {
		m.info.Adds = l.Accelerated(exit, scale)
	}
	return m
}
