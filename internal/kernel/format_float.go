package kernel

import (
	"encoding/binary"
	"math"

	"grove/quant"
	"grove/tensor"
)

// lanes is the number of outputs of a packed group: two vectors of eight.
const lanes = 16

// floatFormat is the format of F32, F16 and BF16 weights.
// Packed: [groups][k][16 outputs], elements as in the file.
// Order: one chain over k ascending, acc = FMA32(w[o][k], x[k], acc) from +0.
func floatFormat(t tensor.Type, elem int) *Format {
	f := &Format{Type: t, BlockK: 1, Group: lanes}
	f.PackedSize = func(out, k int) int { return f.Groups(out) * lanes * k * elem }
	f.Pack = func(dst, src []byte, out, k, g0, g1 int) {
		f.checkPack(dst, src, out, k, g0, g1)
		row := k * elem
		for g := g0; g < g1; g++ {
			n := min(lanes, out-g*lanes)
			interleave(dst[g*lanes*row:][:lanes*row], src[g*lanes*row:][:n*row], row, row, elem)
		}
	}
	f.MatMul = func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *Rows) {
		f.checkMatMul(dst, stride, w, out, k, g0, g1, x)
		if x.N > 0 {
			mulFloat(t, elem, dst, stride, w, out, k, g0, g1, x)
		}
	}
	f.Row = func(dst []float32, w []byte, out, k, o int) {
		f.checkRow(dst, w, out, k, o)
		w = w[(o/lanes*k*lanes+o%lanes)*elem:]
		for i := range dst[:k] {
			dst[i] = element(t, w[i*lanes*elem:])
		}
	}
	return f
}

// mulFloatGo is the specification of the product over packed float weights.
func mulFloatGo(t tensor.Type, elem int, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *Rows) {
	var v [lanes]float32
	clearOutputs(dst, stride, min(g0*lanes, out), min(g1*lanes, out), x.N)
	for g := g0; g < g1; g++ {
		n := min(lanes, out-g*lanes)
		for i := range k {
			row := w[(g*k+i)*lanes*elem:]
			for j := range v {
				v[j] = element(t, row[j*elem:])
			}
			for r := range x.N {
				acc, xi := dst[r*stride+g*lanes:][:n], x.F[r*k+i]
				for j, a := range acc {
					// FMA32 by hand, twice as fast: the compiler does not inline it.
					s := float64(v[j])*float64(xi) + float64(a)
					if doubtful(s) {
						acc[j] = fma32Slow(v[j], xi, a)
						continue
					}
					acc[j] = float32(s)
				}
			}
		}
	}
}

// clearOutputs sets outputs [o0, o1) of n rows to +0, where every chain of N1 starts.
func clearOutputs(dst []float32, stride, o0, o1, n int) {
	for r := range n {
		clear(dst[r*stride+o0 : r*stride+o1])
	}
}

// element returns the float of type t at the start of b.
func element(t tensor.Type, b []byte) float32 {
	switch t {
	case tensor.F16:
		return half(b)
	case tensor.BF16:
		return quant.BF16ToF32(binary.LittleEndian.Uint16(b))
	default:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
}

// half returns the half float at the start of b.
func half(b []byte) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(b)) }

// interleave writes width bytes of each of up to 16 rows to dst, unit (1, 2 or 4) bytes of every row
// in turn. The rows lie stride bytes apart in src; those that src lacks are zero.
func interleave(dst, src []byte, stride, width, unit int) {
	rows := 0
	if width > 0 {
		rows = (len(src) + stride - width) / stride
	}
	if rows < lanes {
		clear(dst)
	}
	for j := range rows {
		row := src[j*stride:][:width]
		to := dst[j*unit:]
		switch unit {
		case 1:
			for i, v := range row {
				to[i*lanes] = v
			}
		case 2:
			for i := 0; i < width; i += 2 {
				binary.LittleEndian.PutUint16(to[i*lanes:], binary.LittleEndian.Uint16(row[i:]))
			}
		default:
			for i := 0; i < width; i += 4 {
				binary.LittleEndian.PutUint32(to[i*lanes:], binary.LittleEndian.Uint32(row[i:]))
			}
		}
	}
}
