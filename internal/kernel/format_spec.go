package kernel

import (
	"grove/quant"
	"grove/tensor"
)

// The specification of the products over quantised types: the chain of one output over one block as the
// file holds it. The packed layouts and the assembly change nothing of its bits (N1, N7).

// dot continues the chains of one output over one block of its weights, as the file holds it: acc[r*stride]
// for every row r, whose activations of the block start at block xb of the row's nb blocks of 32.
func (l *blockLayout) dot(acc []float32, stride int, block []byte, xb, nb int, x *Rows) {
	switch l.t {
	case tensor.Q8_0:
		dotQ8_0(acc, stride, block, xb, nb, x)
	case tensor.Q4_0:
		dotQ4_0(acc, stride, block, xb, nb, x)
	case tensor.Q4_K:
		dotQ4_K(acc, stride, block, xb, nb, x)
	case tensor.Q6_K:
		dotQ6_K(acc, stride, block, xb, nb, x)
	}
}

// dotQ8_0 takes a block of 32 in one step: with the exact integer sum isum of weight times quantised
// activation,
//
//	acc = FMA32(float32(isum), float32(dw*dx), acc)
func dotQ8_0(acc []float32, stride int, block []byte, xb, nb int, x *Rows) {
	d := half(block[quant.Q8_0D:])
	var q [QBlock]int8
	for i := range q {
		q[i] = int8(block[quant.Q8_0Q+i])
	}
	for r := range x.N {
		at := r*nb + xb
		acc[r*stride] = FMA32(float32(dotInt8(&q, x.Q[at*QBlock:])), d*x.D[at], acc[r*stride])
	}
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

// values writes the elements of a block of the file, as package quant does.
func (l *blockLayout) values(dst []float32, block []byte) {
	switch l.t {
	case tensor.Q8_0:
		d := half(block[quant.Q8_0D:])
		for i, q := range block[quant.Q8_0Q:] {
			dst[i] = d * float32(int8(q))
		}
	case tensor.Q4_0:
		d := half(block[quant.Q4_0D:])
		for i, q := range block[quant.Q4_0Q:] {
			dst[i] = d * float32(int(q&15)-8)
			dst[i+16] = d * float32(int(q>>4)-8)
		}
	case tensor.Q4_K:
		d, dmin := half(block[quant.Q4_KD:]), half(block[quant.Q4_KMin:])
		for i := range dst {
			s := i / QBlock
			sc, m := quant.Q4KScale(block[quant.Q4_KScales:quant.Q4_KQ], s)
			q := block[quant.Q4_KQ+s/2*QBlock+i%QBlock] >> (s % 2 * 4) & 15
			dst[i] = float32(float32(d*float32(sc))*float32(q)) - float32(dmin*float32(m))
		}
	case tensor.Q6_K:
		d := half(block[quant.Q6_KD:])
		for i := range dst {
			low, ls, high, hs := q6At(i)
			q := int(block[low]>>ls&15|block[high]>>hs&3<<4) - 32
			dst[i] = float32(d*float32(int8(block[quant.Q6_KScales+i/16]))) * float32(q)
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
