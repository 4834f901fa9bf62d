package kernel

import (
	"fmt"

	"grove/quant"
	"grove/tensor"
)

// A blockFunc continues the chains of one output over one block of its weights: acc[r*stride] for
// every row r, whose activations of the block start at block xb of the row's nb blocks.
type blockFunc func(acc []float32, stride int, block []byte, xb, nb int, x *Rows)

// fileFormat is the format of a quantised type whose packed layout is the file's own rows.
func fileFormat(t tensor.Type, dot blockFunc) *Format {
	elems, size, _ := t.Block()
	f := &Format{Type: t, Quantized: true, BlockK: elems, Group: 1}
	f.PackedSize = func(out, k int) int { return out * (k / elems) * size }
	f.Pack = func(dst, src []byte, out, k, g0, g1 int) {
		f.checkPack(dst, src, out, k, g0, g1)
		row := k / elems * size
		copy(dst[g0*row:g1*row], src[g0*row:g1*row])
	}
	f.MatMul = func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *Rows) {
		f.checkMatMul(dst, stride, w, out, k, g0, g1, x)
		clearOutputs(dst, stride, g0, g1, x.N)
		if x.N == 0 {
			return
		}
		nb := k / elems
		for o := g0; o < g1; o++ {
			for b := range nb {
				dot(dst[o:], stride, w[(o*nb+b)*size:][:size], b*elems/QBlock, k/QBlock, x)
			}
		}
	}
	f.Row = func(dst []float32, w []byte, out, k, o int) {
		f.checkRow(dst, w, out, k, o)
		row := k / elems * size
		if err := quant.Unpack(t, dst[:k], w[o*row:][:row]); err != nil {
			panic(fmt.Sprintf("kernel: %v", err))
		}
	}
	return f
}

// dotQ4_0 has the order of Q8_0, the exact integer sum being over nibble - 8.
func dotQ4_0(acc []float32, stride int, block []byte, xb, nb int, x *Rows) {
	d := half(block[quant.Q4_0D:])
	var q [QBlock]int8
	nibbles(q[:16], block[quant.Q4_0Q:], 0)
	nibbles(q[16:], block[quant.Q4_0Q:], 4)
	for r := range x.N {
		at := r*nb + xb
		isum := dotInt8(&q, x.Q[at*QBlock:]) - 8*x.Sum[at]
		acc[r*stride] = FMA32(float32(isum), d*x.D[at], acc[r*stride])
	}
}

// dotQ4_K takes each sub-block of 32, ascending, in two steps: with the exact integers
// p = sc * sum(nibble*q) and m * sum(q),
//
//	acc = FMA32(float32(p), float32(d*dx), acc)
//	acc = FMA32(-float32(m*sum), float32(dmin*dx), acc)
func dotQ4_K(acc []float32, stride int, block []byte, xb, nb int, x *Rows) {
	d, dmin := half(block[quant.Q4_KD:]), half(block[quant.Q4_KMin:])
	var q [QBlock]int8
	for s := range quant.Q4_KElems / QBlock {
		sc, m := quant.Q4KScale(block[quant.Q4_KScales:quant.Q4_KQ], s)
		nibbles(q[:], block[quant.Q4_KQ+s/2*QBlock:], s%2*4)
		for r := range x.N {
			at := r*nb + xb + s
			p := int32(sc) * dotInt8(&q, x.Q[at*QBlock:])
			a := FMA32(float32(p), d*x.D[at], acc[r*stride])
			acc[r*stride] = FMA32(-float32(int32(m)*x.Sum[at]), dmin*x.D[at], a)
		}
	}
}

// dotQ6_K takes each 32 elements, ascending, in one step over two groups of 16 with a scale each:
// with the exact integer isum = sc[0]*sum(q6*q) + sc[1]*sum(q6*q), q6 being the bits less 32,
//
//	acc = FMA32(float32(isum), float32(d*dx), acc)
func dotQ6_K(acc []float32, stride int, block []byte, xb, nb int, x *Rows) {
	d := half(block[quant.Q6_KD:])
	var q [QBlock]int8
	for s := range quant.Q6_KElems / QBlock {
		h, k := s/4, s%4
		low := block[quant.Q6_KLow+64*h+k%2*QBlock:]
		high := block[quant.Q6_KHigh+QBlock*h:]
		for i := range q {
			q[i] = int8(low[i]>>(k/2*4)&15|high[i]>>(2*k)&3<<4) - 32
		}
		sc := block[quant.Q6_KScales+2*s:]
		for r := range x.N {
			at := r*nb + xb + s
			isum := int32(0)
			for i, v := range x.Q[at*QBlock:][:QBlock] {
				isum += int32(int8(sc[i/16])) * int32(q[i]) * int32(v)
			}
			acc[r*stride] = FMA32(float32(isum), d*x.D[at], acc[r*stride])
		}
	}
}

// nibbles writes the nibbles of src at the shift, 0 or 4.
func nibbles(dst []int8, src []byte, shift int) {
	for i := range dst {
		dst[i] = int8(src[i] >> shift & 15)
	}
}
