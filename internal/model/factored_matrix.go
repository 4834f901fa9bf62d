// factored_matrix.go multiplies with matrices that are stored as two factors.

package model

import "grove/internal/compute"

// FactoredMatrix is a product with a matrix that is stored as two factors (Wei et al. 2024, "Building on Efficient Foundations", section 3): both dense
// (LowRank), the first one of blocks on its diagonal (BlockDense), or both of blocks with a shuffle between them and behind them
// (BlockShuffle). Where the matrix is there as it is, Dense has it. It is read-only.
type FactoredMatrix struct {
	Dense         compute.Projection
	First, Second *compute.Matrix // stacks of blocks; First is nil where the matrix is dense
	Bias          compute.Vector
}

// Forward returns the product with rows.
func (f *FactoredMatrix) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	if f.First == nil {
		return x.Linear(f.Dense, h)
	}
	middle := diagonal(x, f.First, h)
	n := f.Second.Experts()
	if n > 1 {
		middle = transposed(x, middle, f.Second.In(), n)
	}
	out := diagonal(x, f.Second, middle)
	if n > 1 {
		out = transposed(x, out, n, f.Second.Out())
	}
	if f.Bias.Len() > 0 {
		out = x.AddVector(out, f.Bias)
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
