package model

import (
	"slices"

	"grove/internal/compute"
	"grove/internal/weights/tensor"
)

// Rows are N rows of a tensor, from row First on.
type Rows struct{ First, N int }

// Gather loads several projections from one tensor of total rows: each has the rows that its list names, in its order, and
// their part of the bias.
func (l *Loader) Gather(name string, total, in int, lists ...[]Rows) []compute.Projection {
	v, ok := l.view(name+".weight", total, in)
	bias := l.VectorIf(name+".bias", total)
	row, whole := v.Type.RowBytes(in)
	if ok && (!whole || len(v.Data) != row*total) {
		l.fail("tensor %q of type %v: %d bytes do not hold shape %v", v.Name, v.Type, len(v.Data), v.Shape)
	}
	if !ok || l.err != nil {
		return slices.Repeat([]compute.Projection{{Matrix: &compute.Matrix{}}}, len(lists))
	}
	var ps []compute.Projection
	for _, list := range lists {
		var data []byte
		var b compute.Vector
		n := 0
		for _, r := range list {
			data = append(data, v.Data[r.First*row:(r.First+r.N)*row]...)
			if bias.Len() > 0 {
				b.F = append(b.F, bias.F[r.First:r.First+r.N]...)
			}
			n += r.N
		}
		ps = append(ps, compute.Projection{Matrix: l.store(tensor.View{Name: v.Name, Type: v.Type, Shape: []int{n, in}, Data: data}), Bias: b})
	}
	return ps
}
