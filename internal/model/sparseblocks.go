package model

import (
	"fmt"

	"grove/internal/compute"
)

// Blocks is the feed-forward block of BlockFFN (Song et al. 2025, section 3.1): blocks without a gate of their own, each times a gate of the row,
// RMSNorm of ReLU of a product. Most gates are 0, and blocks for which no row has a gate are not read.
type Blocks struct {
	Router   compute.Projection
	Norm     compute.Vector // of the gates
	Up, Down compute.Projection
	eps      float32
}

// Blocks loads the block of a layer, whose blocks have ffn inner values. s.ExpertsPerToken is about how many a row has gates for; predictions of
// what steps take use it, and nothing else.
func (l *Loader) Blocks(s Hyperparameters, layer, ffn int) Blocks {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	stack := func(t string, out, in int) compute.Projection {
		p := compute.Projection{Matrix: l.Stack(name(t)+".weight", s.Experts, out, in)}
		l.adapts(name(t)+".weight", p.Matrix)
		return p
	}
	b := Blocks{
		Router: l.Projection(name("ffn_gate_inp"), s.Experts, s.Width), Norm: l.Vector(name("ffn_gate_inp_norm.weight"), s.Experts),
		Up: stack("ffn_up_exps", ffn, s.Width), Down: stack("ffn_down_exps", s.Width, ffn), eps: s.Eps,
	}
	l.NoteMixture(s, layer, b.Up.Matrix.Bytes()+b.Down.Matrix.Bytes())
	return b
}

// Forward returns the block's addition to the stream.
func (b *Blocks) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	gates := x.RMSNorm(x.Relu(x.Linear(b.Router, h)), b.Norm, b.eps)
	return x.SparseBlocks(gates, b.Up, b.Down, h)
}
