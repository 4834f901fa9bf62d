package method

import (
	"grove/internal/forest"
)

// Module is a draft module that is open beside the target, as its description says. Its rows take tokens and states, see [compute.Exec.EmbedPairs]. It is safe for concurrent use.
type Module struct {
	Model
	forest.Module
	Accelerated Accelerated // of a module that consists of what adds to the target's first layers and runs no rows
	Next        []*Module   // the predictors of the same file behind it: the k-th draft behind a text is that of the k-th, further ones that of the last
}

// Accelerated is low-rank matrices that add to products of the target's first layers.
type Accelerated struct {
	Layers  int // the first layers of the target that they add to; 0: there are none
	Adapter int // the number by which the target's rows have them, see [forest.Row]
}

// Wants lists the outputs of the target's rows that the module reads as features.
func (m *Module) Wants() Wants {
	var w Wants
	if m.Taps == nil {
		w.Rows.State = true
	}
	for _, t := range m.Taps {
		w.Rows.Hidden = w.Rows.Hidden.With(t - 1)
	}
	w.Prompt, w.Last = w.Rows, m.Window()
	return w
}

// longest is for how many tokens published modules were trained; they are not known to use what lies further back.
const longest = 2048

// Window returns how many of the last tokens of a text the module reads at most where it begins with it.
func (m *Module) Window() int { return min(m.Size().Context, longest) }

// Feature appends to dst the feature of a row that gave what Wants asks for, and reports whether it did.
func (m *Module) Feature(dst []float32, r *RowResult) ([]float32, bool) {
	if m.Taps == nil {
		return append(dst, r.State...), r.State != nil
	}
	if len(r.Hidden) != len(m.Taps) {
		return dst, false
	}
	for _, t := range m.Taps {
		below := 0 // taps that come before it: outputs ascend
		for _, other := range m.Taps {
			if other < t {
				below++
			}
		}
		dst = append(dst, r.Hidden[below]...)
	}
	return dst, true
}

// FeatureWidth returns the values of a feature.
func (m *Module) FeatureWidth() int { return m.Module.FeatureWidth(m.Size().Width) }

// Module returns the draft module of a family, or nil where none is open.
func (e Env) Module(family string) *Module {
	for _, m := range e.Modules {
		if m.Family == family {
			return m
		}
	}
	return nil
}
