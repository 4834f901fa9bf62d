package model

import (
	"fmt"

	"grove/compute"
)

// Factored is a product with a matrix that is stored as two factors (Wei et al. 2024, "Building on Efficient Foundations", section 3): both dense
// (LowRank), the first one of blocks on its diagonal (BlockDense), or both of blocks with a shuffle between them and behind them
// (BlockShuffle). Where the matrix is there as it is, dense has it.
type Factored struct {
	dense         compute.Projection
	first, second *compute.Matrix // stacks of blocks; first is nil where the matrix is dense
	bias          compute.Vector
}

// maxFactorBlocks bounds the blocks of a factor.
const maxFactorBlocks = 64

// factored loads the matrix name of shape [out, in], as it is or as the factors name.in and name.out.
func (l *Loader) factored(name string, out, in int) (f Factored) {
	if !l.Has(name + ".in.weight") {
		f.dense = l.Projection(name, out, in)
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
	f.first, f.second = l.Stack(name+".in.weight", a[0], a[1], a[2]), l.Stack(name+".out.weight", b[0], b[1], b[2])
	f.bias = l.VectorIf(name+".bias", out)
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

// Forward returns the product with rows.
func (f *Factored) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	if f.first == nil {
		return x.Linear(f.dense, h)
	}
	middle := diagonal(x, f.first, h)
	n := f.second.Experts()
	if n > 1 {
		middle = transposed(x, middle, f.second.In(), n)
	}
	out := diagonal(x, f.second, middle)
	if n > 1 {
		out = transposed(x, out, n, f.second.Out())
	}
	if f.bias.Len() > 0 {
		out = x.AddVector(out, f.bias)
	}
	return out
}

// diagonal returns the product with a matrix that has blocks on its diagonal and is zero elsewhere.
func diagonal(x *compute.Exec, m *compute.Matrix, h compute.Buf) compute.Buf {
	if m.Experts() <= 1 {
		return x.Linear(compute.Projection{Matrix: m}, h)
	}
	return x.LinearHeads(x.Buffer(h, m.Experts()*m.Out()), 0, h, m)
}

// transposed returns the values of each row as the transpose of what they are as a matrix of rows times columns.
func transposed(x *compute.Exec, h compute.Buf, rows, columns int) compute.Buf {
	dst := x.Buffer(h, rows*columns)
	if columns <= rows {
		for c := range columns {
			one := x.CopyHeads(x.Buffer(h, rows), 0, h, c, 1, rows)
			x.CopyHeads(dst, c*rows, one, 0, rows, 1)
		}
		return dst
	}
	for r := range rows {
		x.CopyHeads(dst, r, x.Part(h, r*columns, columns), 0, 1, columns)
	}
	return dst
}

// factoredMLP is a feed-forward block some of whose matrices are stored as factors. up is the gate and then what it gates, where the file
// has no gate.
type factoredMLP struct {
	gate, up, down Factored
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
		m.gate = l.factored(name("ffn_gate"), s.FFN, s.Width)
	}
	m.up, m.down = l.factored(name("ffn_up"), out, s.Width), l.factored(name("ffn_down"), s.Width, s.FFN)
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
