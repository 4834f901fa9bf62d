// Package matmul multiplies rows of activations by matrices of every weight type, which it packs for that:
// in portable Go, which is the specification, and in assembly chosen by [kernel.Use]. Its README states the
// order of every sum (N1).
package matmul

import (
	"fmt"

	"grove/internal/kernel"
	"grove/weights/tensor"
)

// A Format says how the weights of one type are stored and multiplied: one row of the table of
// weight types. A matrix of out outputs and k inputs is stored in groups of Group outputs.
//
// All functions panic on a caller's mistake (a k that is no multiple of BlockK, a range of groups
// outside the matrix, a slice too short) and allocate nothing. They may run concurrently over
// different groups.
type Format struct {
	Type      tensor.Type
	Quantized bool // MatMul reads Q, D and Sum of the rows, not F
	BlockK    int  // k must be a multiple of it
	Group     int  // outputs of a group: those that lie interleaved

	// PackedSize returns the bytes of the packed matrix, padded to whole groups.
	PackedSize func(out, k int) int

	// Pack writes the groups [g0, g1) of the row-major matrix src, the bytes of a file, to their
	// places in dst, which holds PackedSize(out, k) bytes. Outputs past the last are zero.
	Pack func(dst, src []byte, out, k, g0, g1 int)

	// MatMul multiplies every row of x by the outputs of the groups [g0, g1) of the packed matrix
	// w: dst[r*stride+o] = w[o] . x[r], in the order that the README of this package states for the
	// type (N1). It writes nothing else of dst.
	MatMul func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows)

	// Row writes the k values of output o of the packed matrix w to dst, as an embedding table
	// needs them.
	Row func(dst []float32, w []byte, out, k, o int)
}

var formats = func() []*Format {
	all := []*Format{floatFormat(tensor.F32, 4), floatFormat(tensor.F16, 2), floatFormat(tensor.BF16, 2)}
	for _, l := range blockLayouts {
		all = append(all, blockFormat(l))
	}
	return all
}()

// FormatOf returns the format of weights of type t, false where products over it do not exist.
func FormatOf(t tensor.Type) (*Format, bool) {
	for _, f := range formats {
		if f.Type == t {
			return f, true
		}
	}
	return nil, false
}

// Groups returns the number of groups of a matrix of out outputs.
func (f *Format) Groups(out int) int { return (out + f.Group - 1) / f.Group }

// checkRange panics unless out, k and the groups [g0, g1) describe a part of a matrix of f.
func (f *Format) checkRange(out, k, g0, g1 int) {
	if out < 0 || k < 0 || k%f.BlockK != 0 {
		panic(fmt.Sprintf("matmul: %v: no matrix of %d outputs and %d inputs", f.Type, out, k))
	}
	if g0 < 0 || g1 < g0 || g1 > f.Groups(out) {
		panic(fmt.Sprintf("matmul: %v: groups [%d, %d) of %d", f.Type, g0, g1, f.Groups(out)))
	}
}

// checkPack panics unless dst and src hold a whole matrix.
func (f *Format) checkPack(dst, src []byte, out, k, g0, g1 int) {
	f.checkRange(out, k, g0, g1)
	row, _ := f.Type.RowBytes(k)
	if len(src) < out*row || len(dst) < f.PackedSize(out, k) {
		panic(fmt.Sprintf("matmul: %v: packing [%d, %d] from %d bytes into %d", f.Type, out, k, len(src), len(dst)))
	}
}

// checkMatMul panics unless every slice holds what the product reads and writes.
func (f *Format) checkMatMul(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
	f.checkRange(out, k, g0, g1)
	if len(w) < f.PackedSize(out, k) {
		panic(fmt.Sprintf("matmul: %v: [%d, %d] in %d bytes", f.Type, out, k, len(w)))
	}
	if x.N < 0 || x.K != k {
		panic(fmt.Sprintf("matmul: %v: %d rows of %d values for %d inputs", f.Type, x.N, x.K, k))
	}
	short := len(x.F) < x.N*k
	if f.Quantized {
		nb := x.N * (k / kernel.QBlock)
		short = len(x.Q) < x.N*k || len(x.D) < nb || len(x.Sum) < nb
	}
	if short {
		panic(fmt.Sprintf("matmul: %v: %d rows of %d values in slices too short", f.Type, x.N, k))
	}
	if x.N > 0 && (stride < out || len(dst) < (x.N-1)*stride+out) {
		panic(fmt.Sprintf("matmul: %v: %d rows of %d outputs, stride %d, in %d", f.Type, x.N, out, stride, len(dst)))
	}
}

// checkRow panics unless output o exists in w and dst has room for it.
func (f *Format) checkRow(dst []float32, w []byte, out, k, o int) {
	f.checkRange(out, k, 0, 0)
	if o < 0 || o >= out || len(w) < f.PackedSize(out, k) || len(dst) < k {
		panic(fmt.Sprintf("matmul: %v: output %d of [%d, %d] in %d bytes into %d values", f.Type, o, out, k, len(w), len(dst)))
	}
}
