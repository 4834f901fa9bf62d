package matmul

import (
	"encoding/binary"
	"math"

	"grove/internal/kernel"
	"grove/weights/codec"
	"grove/weights/tensor"
)

// Lanes is the number of outputs of a packed group of any type: two vectors of eight.
const Lanes = 16

const lanes = Lanes

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
	f.MatMul = func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
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
func mulFloatGo(t tensor.Type, elem int, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
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
				kernel.AddScaled(dst[r*stride+g*lanes:][:n], x.F[r*k+i], v[:n])
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
		return codec.BF16ToF32(binary.LittleEndian.Uint16(b))
	default:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
}

// half returns the half float at the start of b.
func half(b []byte) float32 { return codec.F16ToF32(binary.LittleEndian.Uint16(b)) }

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
	// Squares of units go through registers of 8 bytes, a strip at a time that stays in the cache.
	const strip = 128
	side := 8 / unit
	whole, squares := width&^7, rows/side*side
	if unit == 1 {
		squares = 0
	}
	for from := 0; from < whole; from += strip {
		n := min(strip, whole-from)
		for j := 0; j < squares; j += side {
			to, square := dst[from*lanes+j*unit:], src[j*stride+from:]
			if unit == 2 {
				transpose4(to, square, stride, n)
			} else {
				transpose2(to, square, stride, n)
			}
		}
	}
	if whole < width {
		interleaveUnits(dst[whole*lanes:], src[whole:], stride, width-whole, unit, 0, squares)
	}
	interleaveUnits(dst, src, stride, width, unit, squares, rows)
}

// interleaveUnits is interleave for the rows [j0, j1), unit by unit.
func interleaveUnits(dst, src []byte, stride, width, unit, j0, j1 int) {
	for j := j0; j < j1; j++ {
		row, to := src[j*stride:][:width], dst[j*unit:]
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

// transpose2 interleaves n bytes, a multiple of 8, of each of 2 rows by 4 bytes, at 2 of the 16 places.
func transpose2(dst, src []byte, stride, n int) {
	const low = 1<<32 - 1
	a, b := src[:n], src[stride:][:n]
	for i := 0; i+8 <= len(a) && i+8 <= len(b); i += 8 {
		x, y := binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])
		to := dst[i*lanes:]
		binary.LittleEndian.PutUint64(to, x&low|y<<32)
		binary.LittleEndian.PutUint64(to[4*lanes:], x>>32|y&^low)
	}
}

// transpose4 interleaves n bytes, a multiple of 8, of each of 4 rows by 2 bytes, at 4 of the 16 places.
func transpose4(dst, src []byte, stride, n int) {
	const low, even = 1<<32 - 1, 0x0000ffff0000ffff
	a, b, c, d := src[:n], src[stride:][:n], src[2*stride:][:n], src[3*stride:][:n]
	for i := 0; i+8 <= n; i += 8 {
		w, x := binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])
		y, z := binary.LittleEndian.Uint64(c[i:]), binary.LittleEndian.Uint64(d[i:])
		p, q := w&even|x&even<<16, w>>16&even|x&^even // units 0 and 2, 1 and 3 of the first two rows
		r, s := y&even|z&even<<16, y>>16&even|z&^even // and of the others
		to := dst[i*lanes:][:3*2*lanes+8]
		binary.LittleEndian.PutUint64(to, p&low|r<<32)
		binary.LittleEndian.PutUint64(to[2*lanes:], q&low|s<<32)
		binary.LittleEndian.PutUint64(to[2*2*lanes:], p>>32|r&^low)
		binary.LittleEndian.PutUint64(to[3*2*lanes:], q>>32|s&^low)
	}
}
