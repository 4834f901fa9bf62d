package arch

import (
	"grove/internal/compute"
	"grove/internal/model"
)

// gatedMLP is a feed-forward block with SiLU as the gate.
type gatedMLP struct{ model.MLP }

// Forward implements [hybridBlock].
func (m *gatedMLP) Forward(x *compute.Exec, h compute.Buf) compute.Buf { return m.Silu(x, h) }

// squaredMLP is a feed-forward block without a gate, with the square of ReLU between its matrices (So et al. 2021).
type squaredMLP struct{ model.PlainMLP }

// Forward implements [hybridBlock].
func (m *squaredMLP) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	return m.PlainMLP.Forward(x, h, (*compute.Exec).ReluSquared)
}

// hybridMixture is experts with SiLU as the gate, chosen for each row.
type hybridMixture struct{ model.Experts }

// Forward implements [hybridBlock].
func (m *hybridMixture) Forward(x *compute.Exec, h compute.Buf) compute.Buf { return m.Silu(x, h) }
