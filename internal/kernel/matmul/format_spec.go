package matmul

import (
	"grove/internal/kernel"
	"grove/weights/codec"
	"grove/weights/tensor"
)

// The specification of the products over quantised types: the chain of one output over one block as the
// file holds it. The packed layouts and the assembly change nothing of its bits (N1, N7).

// A term is 32 consecutive weights of one output. With the exact integers
//
//	p = scale[0]*sum(q*x) + scale[1]*sum(q*x)    over the two halves of 16,
//	o = offset[0]*sum(x) + offset[1]*sum(x)      likewise,
//
// x being the quantised activations, it continues a chain by one step, or two where the type has offsets:
//
//	acc = FMA32(float32(p), float32(d*dx), acc)
//	acc = FMA32(float32(o), float32(dOffset*dx), acc)
//
// Neither integer leaves what a float32 holds exactly. A chain is never -0, so the sign of a zero p or o does
// not count.
type term struct {
	q          [kernel.QBlock]int8
	scale      [2]int32
	d          float32
	offset     [2]int32
	dOffset    float32
	hasOffsets bool
}

// dot continues the chains of one output over one block of its weights, as the file holds it: acc[r*stride]
// for every row r, whose activations of the block start at block xb of the row's nb blocks of 32.
func (l *blockLayout) dot(acc []float32, stride int, block []byte, xb, nb int, x *kernel.Rows) {
	var t term
	for s := range l.elems / kernel.QBlock {
		l.term(&t, block, s)
		for r := range x.N {
			at := r*nb + xb + s
			p, o := t.integers((*[kernel.QBlock]int8)(x.Q[at*kernel.QBlock:]), x.Sum[at])
			acc[r*stride] = kernel.FMA32(float32(p), t.d*x.D[at], acc[r*stride])
			if t.hasOffsets {
				acc[r*stride] = kernel.FMA32(float32(o), t.dOffset*x.D[at], acc[r*stride])
			}
		}
	}
}

// integers returns p and o for a block of activations and its sum.
func (t *term) integers(x *[kernel.QBlock]int8, sum int32) (p, o int32) {
	if t.scale[0] == t.scale[1] {
		for i, v := range x {
			p += int32(t.q[i]) * int32(v)
		}
		p *= t.scale[0]
	} else {
		var first, second int32
		for i := range 16 {
			first += int32(t.q[i]) * int32(x[i])
			second += int32(t.q[16+i]) * int32(x[16+i])
		}
		p = t.scale[0]*first + t.scale[1]*second
	}
	if t.offset[0] == t.offset[1] {
		return p, t.offset[0] * sum
	}
	first := int32(0)
	for _, v := range x[:16] {
		first += int32(v)
	}
	return p, t.offset[0]*first + t.offset[1]*(sum-first)
}

// term reads the weights 32*s and on of a block of the file.
func (l *blockLayout) term(t *term, b []byte, s int) {
	t.scale = [2]int32{1, 1}
	switch l.t {
	case tensor.Q8_0:
		t.d = half(b[codec.Q8_0D:])
		for i := range t.q {
			t.q[i] = int8(b[codec.Q8_0Q+i])
		}
	case tensor.Q4_0:
		t.d = half(b[codec.Q4_0D:])
		t.nibbles(b[codec.Q4_0Q:])
		t.less(8)
	case tensor.Q4_1:
		t.halves(b[codec.Q4_1D:], 1)
		t.nibbles(b[codec.Q4_1Q:])
	case tensor.Q5_0:
		t.d = half(b[codec.Q5_0D:])
		t.nibbles(b[codec.Q5_0Q:])
		t.fifth(word(b[codec.Q5_0High:]))
		t.less(16)
	case tensor.Q5_1:
		t.halves(b[codec.Q5_1D:], 1)
		t.nibbles(b[codec.Q5_1Q:])
		t.fifth(word(b[codec.Q5_1High:]))
	case tensor.IQ4_NL:
		t.d = half(b[codec.IQ4_NLD:])
		t.codes(b[codec.IQ4_NLQ:], &codec.IQ4Values)
	case tensor.MXFP4:
		t.d = codec.E8M0Half(b[codec.MXFP4E])
		t.codes(b[codec.MXFP4Q:], &codec.FP4Values)
	case tensor.IQ4_XS:
		t.d = half(b[codec.IQ4_XSD:])
		t.codes(b[codec.IQ4_XSQ+16*s:], &codec.IQ4Values)
		sc := int32(codec.IQ4XSScale(b[codec.IQ4_XSScales:], s))
		t.scale = [2]int32{sc, sc}
	default:
		l.superTerm(t, b, s)
	}
}

// superTerm is term for the types whose super-blocks of 256 have bits here and there.
func (l *blockLayout) superTerm(t *term, b []byte, s int) {
	at, shift := q2At(kernel.QBlock * s)
	switch l.t {
	case tensor.Q2_K:
		sc := b[codec.Q2_KScales+2*s:]
		t.halves(b[codec.Q2_KD:], 0)
		t.scale = [2]int32{int32(sc[0] & 15), int32(sc[1] & 15)}
		t.offset = [2]int32{-int32(sc[0] >> 4), -int32(sc[1] >> 4)}
		t.bits(b[codec.Q2_KQ+at:], shift, 3)
	case tensor.Q3_K:
		sc := b[codec.Q3_KScales:]
		t.d = half(b[codec.Q3_KD:])
		t.scale = [2]int32{int32(codec.Q3KScale(sc, 2*s)), int32(codec.Q3KScale(sc, 2*s+1))}
		t.bits(b[codec.Q3_KQ+at:], shift, 3)
		t.or(b[codec.Q3_KHigh:], s, 1, 2)
		t.less(4)
	case tensor.Q4_K, tensor.Q5_K:
		sc, m := codec.Q4KScale(b[codec.Q4_KScales:codec.Q4_KQ], s)
		t.halves(b[codec.Q4_KD:], -int32(m))
		t.scale = [2]int32{int32(sc), int32(sc)}
		if l.t == tensor.Q4_K {
			t.bits(b[codec.Q4_KQ+s/2*kernel.QBlock:], s%2*4, 15)
			return
		}
		t.bits(b[codec.Q5_KQ+s/2*kernel.QBlock:], s%2*4, 15)
		t.or(b[codec.Q5_KHigh:], s, 1, 4)
	case tensor.Q6_K:
		sc := b[codec.Q6_KScales+2*s:]
		low, ls, high, hs := q6At(kernel.QBlock * s)
		t.d = half(b[codec.Q6_KD:])
		t.scale = [2]int32{int32(int8(sc[0])), int32(int8(sc[1]))}
		t.bits(b[low:], ls, 15)
		t.or(b[high:], hs, 3, 4)
		t.less(32)
	}
}

// halves reads a scale and that of the offsets, both of which are offset.
func (t *term) halves(b []byte, offset int32) {
	t.d, t.dOffset, t.hasOffsets = half(b), half(b[2:]), true
	t.offset = [2]int32{offset, offset}
}

// nibbles reads weights i and i+16 from the low and the high nibble of byte i.
func (t *term) nibbles(b []byte) {
	for i, v := range b[:16] {
		t.q[i], t.q[i+16] = int8(v&15), int8(v>>4)
	}
}

// codes reads the numbers of weights of a codebook as nibbles does.
func (t *term) codes(b []byte, values *[16]int8) {
	t.nibbles(b)
	for i, v := range t.q {
		t.q[i] = values[v]
	}
}

// fifth adds bit i of bits to weight i as its fifth.
func (t *term) fifth(bits uint32) {
	for i := range t.q {
		t.q[i] |= int8(bits>>i&1) << 4
	}
}

// bits reads weight i from the bits of byte i at a shift.
func (t *term) bits(b []byte, shift int, mask byte) {
	t.q = [kernel.QBlock]int8{}
	t.or(b, shift, mask, 0)
}

// or adds such bits, at another place, to every weight.
func (t *term) or(b []byte, shift int, mask byte, to int) {
	for i, v := range b[:kernel.QBlock] {
		t.q[i] |= int8(v >> shift & mask << to)
	}
}

// less subtracts n from every weight.
func (t *term) less(n int8) {
	for i := range t.q {
		t.q[i] -= n
	}
}
