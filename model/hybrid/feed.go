package hybrid

import (
	"grove/compute"
	"grove/model"
)

// gatedMLP is a feed-forward block with SiLU as the gate.
type gatedMLP struct{ model.MLP }

// Forward implements [block].
func (m *gatedMLP) Forward(x *compute.Exec, h compute.Buf) compute.Buf { return m.Silu(x, h) }

// squaredMLP is a feed-forward block without a gate, with the square of ReLU between its matrices (So et al. 2021).
type squaredMLP struct{ model.PlainMLP }

// Forward implements [block].
func (m *squaredMLP) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	return m.PlainMLP.Forward(x, h, (*compute.Exec).ReluSquared)
}

// mixture is experts with SiLU as the gate, chosen for each row.
type mixture struct{ model.Experts }

// Forward implements [block].
func (m *mixture) Forward(x *compute.Exec, h compute.Buf) compute.Buf { return m.Silu(x, h) }
