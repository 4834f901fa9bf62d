package matmul

import (
	"grove/internal/kernel"
)

// Float types. Packed: [groups][k][16 outputs], elements as in the file.
// Order: one sum over k ascending, acc = FMA32(w[o][k], x[k], acc) from +0.

// packFloats is Pack for float types.
func (f *Format) packFloats(dst, src []byte, out, k, g0, g1 int) {
	elem := f.codec.Bytes
	row := k * elem
	for g := g0; g < g1; g++ {
		n := min(lanes, out-g*lanes)
		interleave(dst[g*lanes*row:][:lanes*row], src[g*lanes*row:][:n*row], row, row, elem)
	}
}

// multiplyFloats is the specification of the product over packed float weights.
func (f *Format) multiplyFloats(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *Scratch) {
	elem := f.codec.Bytes
	v := &s.lanes
	clearOutputs(dst, stride, min(g0*lanes, out), min(g1*lanes, out), x.N)
	for g := g0; g < g1; g++ {
		n := min(lanes, out-g*lanes)
		for i := range k {
			f.codec.Unpack(v[:], w[(g*k+i)*lanes*elem:][:lanes*elem])
			for r := range x.N {
				kernel.AddScaled(dst[r*stride+g*lanes:][:n], x.F[r*k+i], v[:n])
			}
		}
	}
}

// floatsRow is Row of output j of a packed group for float types.
func (f *Format) floatsRow(dst []float32, group []byte, j int, s *Scratch) {
	elem := f.codec.Bytes
	for len(dst) > 0 {
		n := min(len(dst), len(s.block)/elem)
		gather(s.block[:n*elem], group[j*elem:], elem)
		f.codec.Unpack(dst[:n], s.block[:n*elem])
		dst, group = dst[n:], group[n*lanes*elem:]
	}
}
