package model

import (
	"fmt"

	"grove/internal/compute"
)

// maxFactorBlocks bounds the blocks of a factor.
const maxFactorBlocks = 64

// matrixOf loads the matrix name of shape [out, in], as it is or as the factors name.in and name.out.
func (l *Loader) matrixOf(name string, out, in int) (f FactoredMatrix) {
	if !l.Has(name + ".in.weight") {
		f.Dense = l.Projection(name, out, in)
		return f
	}
	a, b := l.blocks(name+".in.weight"), l.blocks(name+".out.weight")
	if l.err != nil {
		return f
	}
	switch {
	case a[0]*a[2] != in || b[0]*b[1] != out || b[0]*b[2] != a[0]*a[1]:
		l.fail("the factors of %q have shapes %v and %v; their product must have shape [%d %d]", name+".weight", a, b, out, in)
		return f
	case a[0] == 1 && b[0] > 1:
		l.fail("the factors of %q have shapes %v and %v; the second has blocks only where the first has", name+".weight", a, b)
		return f
	}
	f.First, f.Second = l.Stack(name+".in.weight", a[0], a[1], a[2]), l.Stack(name+".out.weight", b[0], b[1], b[2])
	f.Bias = l.VectorIf(name+".bias", out)
	return f
}

// blocks returns the shape [blocks, out, in] of a factor; one that is dense has one block.
func (l *Loader) blocks(name string) (shape [3]int) {
	v, ok := l.file.Tensor(name)
	switch n := len(v.Shape); {
	case l.err != nil:
	case !ok:
		l.fail("tensor %q is missing", name)
	case n != 2 && n != 3:
		l.fail("tensor %q has shape %v; it must be [out in] or [blocks out in]", name, v.Shape)
	default:
		shape = [3]int{1, v.Shape[n-2], v.Shape[n-1]}
		if n == 3 {
			shape[0] = v.Shape[0]
		}
		if min(shape[0], shape[1], shape[2]) < 1 || shape[0] > maxFactorBlocks || max(shape[1], shape[2]) > maxDense {
			l.fail("tensor %q has shape %v; a factor has 1 to %d blocks of 1 to %d rows and columns", name, v.Shape, maxFactorBlocks, maxDense)
		}
	}
	return shape
}

// factoredMLP is a feed-forward block some of whose matrices are stored as factors. up is the gate and then what it gates, where the file
// has no gate.
type factoredMLP struct {
	gate, up, down FactoredMatrix
	inner          int
	fused          bool
}

// FactoredMLP is [Loader.MLP] for a layer whose matrices may be stored as factors. Silu and Gelu of the block work, and its GateUp and Down are not
// there.
func (l *Loader) FactoredMLP(s Hyperparameters, layer int) MLP {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	if !l.Has(name("ffn_gate.in.weight")) && !l.Has(name("ffn_up.in.weight")) && !l.Has(name("ffn_down.in.weight")) {
		return l.MLP(s, layer)
	}
	m := &factoredMLP{inner: s.FFN, fused: !l.Has(name("ffn_gate.in.weight")) && !l.Has(name("ffn_gate.weight"))}
	out := s.FFN
	if m.fused {
		out *= 2
	} else {
		m.gate = l.matrixOf(name("ffn_gate"), s.FFN, s.Width)
	}
	m.up, m.down = l.matrixOf(name("ffn_up"), out, s.Width), l.matrixOf(name("ffn_down"), s.Width, s.FFN)
	return MLP{factored: m}
}

// Loaded reports whether the block is there.
func (m *MLP) Loaded() bool { return m.GateUp != nil || m.factored != nil }

// gated returns the gate and what it gates, of rows.
func (m *factoredMLP) gated(x *compute.Exec, h compute.Buf) (gate, up compute.Buf) {
	if !m.fused {
		gate = m.gate.Forward(x, h)
		return gate, m.up.Forward(x, h)
	}
	both := m.up.Forward(x, h)
	return x.Part(both, 0, m.inner), x.Part(both, m.inner, m.inner)
}
