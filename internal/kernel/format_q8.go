package kernel

import (
	"grove/quant"
	"grove/tensor"
)

// A packed Q8_0 group: for each block of 32 inputs 16 scales (half floats), then 8 quads of
// consecutive inputs, each [16 outputs][4]int8.
const (
	q8Quad       = 4
	q8Scales     = 2 * lanes
	q8GroupBytes = q8Scales + lanes*QBlock // of one block
)

// q8Format is the format of Q8_0 weights.
// Order: for each block of 32 inputs, ascending, with the exact integer sum isum of weight times
// quantised activation, acc = FMA32(float32(isum), float32(dw*dx), acc) from +0.
func q8Format() *Format {
	f := &Format{Type: tensor.Q8_0, Quantized: true, BlockK: QBlock, Group: lanes}
	f.PackedSize = func(out, k int) int { return f.groups(out) * (k / QBlock) * q8GroupBytes }
	f.Pack = func(dst, src []byte, out, k, g0, g1 int) {
		f.checkPack(dst, src, out, k, g0, g1)
		packQ8(dst, src, out, k, g0, g1)
	}
	f.MatMul = func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *Rows) {
		f.checkMatMul(dst, stride, w, out, k, g0, g1, x)
		if x.N > 0 {
			mulQ8(dst, stride, w, out, k, g0, g1, x)
		}
	}
	f.Row = func(dst []float32, w []byte, out, k, o int) {
		f.checkRow(dst, w, out, k, o)
		rowQ8(dst[:k], w, o)
	}
	return f
}

func packQ8(dst, src []byte, out, k, g0, g1 int) {
	nb := k / QBlock
	row := nb * quant.Q8_0Bytes
	for g := g0; g < g1; g++ {
		n := min(lanes, out-g*lanes)
		from := src[g*lanes*row:][:n*row]
		for b := range nb {
			to := dst[(g*nb+b)*q8GroupBytes:][:q8GroupBytes]
			block := from[b*quant.Q8_0Bytes:]
			interleave(to[:q8Scales], block[:(n-1)*row+quant.Q8_0Q], row, quant.Q8_0Q, 2)
			interleave(to[q8Scales:], block[quant.Q8_0Q:(n-1)*row+quant.Q8_0Bytes], row, QBlock, q8Quad)
		}
	}
}

// q8Block writes the 32 quants of output j of a packed block to q and returns their scale.
func q8Block(q *[QBlock]int8, block []byte, j int) float32 {
	for i := range q {
		q[i] = int8(block[q8Scales+(i/q8Quad*lanes+j)*q8Quad+i%q8Quad])
	}
	return half(block[2*j:])
}

func rowQ8(dst []float32, w []byte, o int) {
	nb := len(dst) / QBlock
	var q [QBlock]int8
	for b := range nb {
		d := q8Block(&q, w[(o/lanes*nb+b)*q8GroupBytes:][:q8GroupBytes], o%lanes)
		for i, v := range q {
			dst[b*QBlock+i] = d * float32(v)
		}
	}
}

// mulQ8Go is the specification of the product over packed Q8_0 weights.
func mulQ8Go(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *Rows) {
	nb := k / QBlock
	var d [lanes]float32
	var q [lanes][QBlock]int8
	clearOutputs(dst, stride, min(g0*lanes, out), min(g1*lanes, out), x.N)
	for gb := g0 * nb; gb < g1*nb; gb++ {
		g, b := gb/nb, gb%nb
		block := w[gb*q8GroupBytes:][:q8GroupBytes]
		for j := range d {
			d[j] = q8Block(&q[j], block, j)
		}
		for r := range x.N {
			acc := dst[r*stride+g*lanes:][:min(lanes, out-g*lanes)]
			xb := r*nb + b
			for j := range acc {
				acc[j] = FMA32(float32(dotInt8(&q[j], x.Q[xb*QBlock:])), d[j]*x.D[xb], acc[j])
			}
		}
	}
}

// dotInt8 returns the exact sum of products of a block.
func dotInt8(w *[QBlock]int8, x []int8) int32 {
	sum := int32(0)
	for i, v := range x[:QBlock] {
		sum += int32(w[i]) * int32(v)
	}
	return sum
}
