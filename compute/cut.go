package compute

import "grove/internal/kernel"

// bandOf returns the rows [first, end) of x, in dst.
func bandOf(dst, x *kernel.Rows, first, end int) *kernel.Rows {
	*dst = kernel.Rows{N: end - first, K: x.K, F: x.F[first*x.K : end*x.K]}
	if x.Q != nil {
		b := x.K / kernel.QBlock
		dst.Q, dst.D, dst.Sum = x.Q[first*x.K:end*x.K], x.D[first*b:end*b], x.Sum[first*b:end*b]
	}
	return dst
}

// evenChunk returns the groups of the items that a chunk makes of some groups, with the last one about as long as the others.
func evenChunk(groups, chunk int) int {
	items := (groups + chunk - 1) / chunk
	return (groups + items - 1) / items
}
