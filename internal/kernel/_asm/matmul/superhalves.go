package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The types whose super-blocks have a scale for each 16 inputs.

// The frame of a tile of Q6_K or Q3_K.
const (
	q6Sums  = superTop                   // [half][row][8] sums of 16 activations, times what weights are too large by
	q6D     = q6Sums + 2*blockRows*eight // [16] d
	q6Pairs = q6D + wide                 // [8 sub-blocks][2 halves][16] scales, twice in 16 bits
	q6Frame = q6Pairs + 16*wide
)

// A signedSuper is a type like Q6_K, with signed scales.
type signedSuper struct {
	name    string
	head    int // bytes of a packed super-block of 16 outputs before its bits
	bits    int // bytes of a sub-block of 16 outputs
	less    uint32
	scales  func(s *superTile, v int) (four [4]reg.VecVirtual) // of an output 4 in each lane
	weights func(s *superTile, half int) weights               // too large by less
}

var (
	typeQ6K = signedSuper{
		name: "Q6_K", head: scaleBytes + 4*wide, bits: 6 * wide, less: 32,
		scales: (*superTile).byteScales, weights: (*superTile).sixBits,
	}
	typeQ3K = signedSuper{
		name: "Q3_K", head: scaleBytes + 3*wide, bits: 3 * wide, less: 4,
		scales: (*superTile).q3KScales, weights: (*superTile).threeBits,
	}
)

// signedSuperTile emits the product of n rows by a group of Q6_K or Q3_K weights.
//
// A weight is unsigned bits less a constant: that times the sums of the activations is subtracted in 16 bits, first
// of all, so that no sum over 4 quads leaves 8 * 32 * 127.
func signedSuperTile(k signedSuper) {
	blockFunction(k.name, "x *int8, d *float32", q6Frame, func(t *blockTile) {
		s := &superTile{blockTile: t}
		s.loops(k.bits, 2*wide, func() reg.Register {
			s.halves(1, q6D)
			return s.signedHead(k)
		}, func(at, scales reg.Register) {
			for half := range 2 {
				minus := func(r int) reg.VecVirtual {
					y := YMM()
					VPBROADCASTD(Mem{Base: at, Disp: q6Sums + eight*(blockRows*half+r)}, y)
					return y
				}
				s.half(k.weights(s, half), half, minus, func(r int, acc pair) steps {
					return s.q6KRow(r, half, acc, at, scales)
				})
			}
		})
	})
}

// signedHead emits what begins a super-block but d, and returns where its scales are.
func (s *superTile) signedHead(k signedSuper) reg.Register {
	s.prefetch(k.head / 64)
	s.sums16(k.less, func(r, g int, sums reg.VecVirtual) {
		to := q6Sums + eight*r + 4*g
		if s.floats {
			sums = beginLess(sums)
		}
		VMOVDQU(sums.AsX(), s.local(to))
		VEXTRACTI128(U8(1), sums, s.local(to+blockRows*eight))
	})
	for v := range vectors {
		for i, four := range k.scales(s, v) {
			if s.floats {
				s.signedFloats(four, q6Pairs+4*wide*i+32*v)
				continue
			}
			s.pairs(four, q6Pairs+4*wide*i+32*v, wide, true)
		}
	}
	scales := GP64()
	LEAQ(s.local(q6Pairs), scales)
	ADDQ(U32(k.head), s.w)
	return scales
}

// q6KRow finishes the sums acc of row r over a half of a sub-block.
func (s *superTile) q6KRow(r, half int, acc pair, at, scales reg.Register) steps {
	for v := range acc {
		VPMADDWD(Mem{Base: scales, Disp: wide*half + 32*v}, acc[v], acc[v])
	}
	if half == 0 {
		return s.savePart(r, acc)
	}
	dx, scale := YMM(), vectorPair()
	return steps{func() {
		VBROADCASTSS(Mem{Base: at, Disp: scalesX + eight*r}, dx)
		for v := range acc {
			VPADDD(s.part(r, v), acc[v], acc[v])
			VCVTDQ2PS(acc[v], acc[v])
		}
	}, func() {
		for v := range acc {
			VMULPS(s.local(q6D+32*v), dx, scale[v])
		}
	}, func() {
		for v := range acc {
			VFMADD213PS(s.chain(r, v), scale[v], acc[v])
			VMOVUPS(acc[v], s.chain(r, v))
		}
	}}
}

// sums16 emits the sums of each 16 activations times a small number, in 16 bits and apart for the first and the last
// two of each quad, as the products come. store gets those of four sub-blocks from g on: of the first halves,
// then of the second.
func (s *superTile) sums16(times uint32, store func(r, g int, sums reg.VecVirtual)) {
	c := YMM()
	VMOVDQU(everywhere(times), c)
	for r := range s.n {
		for g := 0; g < 8; g += 4 {
			var p [4]reg.VecVirtual // of a sub-block each: a quad in each lane
			for i := range p {
				p[i] = YMM()
				VPMADDUBSW(s.x.at(r, 32*(g+i)), c, p[i])
			}
			ab, cd := fold(VPUNPCKLDQ, VPUNPCKHDQ, p[0], p[1]), fold(VPUNPCKLDQ, VPUNPCKHDQ, p[2], p[3])
			store(r, g, fold(VPUNPCKLQDQ, VPUNPCKHQDQ, ab, cd))
		}
	}
}

// fold emits the sum of what two instructions interleave from a and b.
func fold(low, high func(...Op), a, b reg.VecVirtual) reg.VecVirtual {
	l, h := YMM(), YMM()
	low(b, a, l)
	high(b, a, h)
	VPADDW(h, l, l)
	return l
}

// byteScales emits the scales of Q6_K, which are whole bytes.
func (s *superTile) byteScales(v int) (four [4]reg.VecVirtual) {
	for i := range four {
		four[i] = YMM()
		VMOVDQU(Mem{Base: s.w, Disp: scaleBytes + wide*i + 32*v}, four[i])
	}
	return four
}

// q3KScales emits the scales of Q3_K: three vectors hold the file's 12 bytes, nibbles in the first two, high bits in the
// third.
func (s *superTile) q3KScales(v int) (four [4]reg.VecVirtual) {
	var coded [3]reg.VecVirtual
	for i := range coded {
		coded[i] = YMM()
		VMOVDQU(Mem{Base: s.w, Disp: scaleBytes + wide*i + 32*v}, coded[i])
	}
	for i := range four {
		low, high := YMM(), YMM()
		VPSRLW(U8(i/2*4), coded[i%2], low)
		VPAND(everywhere(0x0f), low, low)
		if i < 2 {
			VPSLLW(U8(4-2*i), coded[2], high)
		} else {
			VPSRLW(U8(2*i-4), coded[2], high)
		}
		VPAND(everywhere(0x30), high, high)
		VPOR(high, low, low)
		VPSUBB(everywhere(32), low, low)
		four[i] = low
	}
	return four
}

// quad emits the load of quad q of the bits of a sub-block.
func (s *superTile) quad(q, v int) reg.VecVirtual {
	y := YMM()
	VMOVDQU(Mem{Base: s.w, Disp: wide*q + 32*v}, y)
	return y
}

// field returns the bits of each byte of y at a shift, under a mask.
func field(y reg.VecVirtual, shift int, mask uint32) reg.VecVirtual {
	f := YMM()
	if shift == 0 {
		VPAND(everywhere(mask), y, f)
		return f
	}
	VPSRLW(U8(shift), y, f)
	VPAND(everywhere(mask), f, f)
	return f
}

// sixBits emits the weights of half a sub-block: three quads in the low 6 bits of bytes, the fourth in
// their high 2 bits.
func (s *superTile) sixBits(half int) (u weights) {
	low6 := YMM()
	VMOVDQU(everywhere(0x3f), low6)
	for v := range vectors {
		for j := range 3 {
			y := YMM()
			u[j][v] = YMM()
			VMOVDQU(Mem{Base: s.w, Disp: wide*(3*half+j) + 32*v}, y)
			VPAND(low6, y, u[j][v])
			VPSRLW(U8(6-2*j), y, y)
			VPAND(everywhere(3<<(2*j)), y, y)
			if j == 0 {
				u[3][v] = y
				continue
			}
			VPOR(y, u[3][v], u[3][v])
		}
	}
	return u
}

// threeBits emits the weights of half a sub-block of Q3_K.
func (s *superTile) threeBits(half int) (u weights) {
	for v := range vectors {
		if half == 0 {
			for q := range 2 {
				y := s.quad(q, v)
				u[2*q][v], u[2*q+1][v] = field(y, 0, 7), field(y, 3, 7)
			}
			continue
		}
		y := s.quad(2, v)
		for j := range 2 {
			u[j][v] = field(y, 3*j, 7)
			third := field(y, 4+j, 4)
			u[2+j][v] = field(s.quad(j, v), 6, 3)
			VPOR(third, u[2+j][v], u[2+j][v])
		}
	}
	return u
}

// The frame of a tile of Q2_K.
const (
	q2Sums   = superTop                 // [row][8] sums of the two halves of 16 activations, in 16 bits each
	q2D      = q2Sums + blockRows*eight // [16] d, then [16] dmin
	q2Scales = q2D + 2*wide             // [8 sub-blocks] of the next two
	q2Pairs  = 0                        // [2 halves][16] scales, twice in 16 bits
	q2Minima = 2 * wide                 // [16] minima of both halves, 16 bits each
	q2Step   = 3 * wide
	q2Frame  = q2Scales + 8*q2Step

	q2Head = 2*scaleBytes + 4*wide // bytes of a packed super-block before its bits
)

// q2KTile emits the product of n rows by a group of Q2_K weights.
func q2KTile() {
	blockFunction("Q2_K", "x *int8, d *float32", q2Frame, func(t *blockTile) {
		s := &superTile{blockTile: t}
		s.loops(2*wide, q2Step, s.q2KHead, func(at, scales reg.Register) {
			for half := range 2 {
				s.half(s.twoBits(half), half, nil, func(r int, acc pair) steps { return s.q2KRow(r, half, acc, at, scales) })
			}
		})
	})
}

// q2KHead emits what begins a super-block, and returns where its scales are.
func (s *superTile) q2KHead() reg.Register {
	s.prefetch(q2Head / 64)
	s.sums16(1, func(r, g int, sums reg.VecVirtual) {
		high := XMM()
		VPMADDWD(vector("ones", func(int) uint32 { return 1<<16 | 1 }), sums, sums)
		VEXTRACTI128(U8(1), sums, high)
		VPSLLD(U8(16), high, high)
		VPBLENDW(U8(0xaa), high, sums.AsX(), high)
		VMOVDQU(high, s.local(q2Sums+eight*r+4*g))
	})
	s.halves(2, q2D)
	s.q2KScales()
	scales := GP64()
	LEAQ(s.local(q2Scales), scales)
	ADDQ(U32(q2Head), s.w)
	return scales
}

// q2KScales emits the scales and minima of a super-block, the low and high nibbles of 16 bytes, to the frame.
func (s *superTile) q2KScales() {
	for v := range vectors {
		for i := range 4 {
			low, high, to := YMM(), YMM(), q2Scales+2*i*q2Step+32*v
			VMOVDQU(Mem{Base: s.w, Disp: 2*scaleBytes + wide*i + 32*v}, low)
			VPSRLW(U8(4), low, high)
			VPAND(everywhere(0x0f), low, low)
			VPAND(everywhere(0x0f), high, high)
			for b := range 4 {
				y := YMM()
				VPSHUFB(byteTwice(b, false), low, y)
				VMOVDQU(y, s.local(to+q2Pairs+b/2*q2Step+b%2*wide))
			}
			for b := range 2 {
				y := YMM()
				VPSHUFB(bytePair(b), high, y)
				VMOVDQU(y, s.local(to+q2Minima+b*q2Step))
			}
		}
	}
}

// twoBits emits the weights of half a sub-block: four quads in the bytes of one.
func (s *superTile) twoBits(half int) (u weights) {
	for v := range vectors {
		y := s.quad(half, v)
		for j := range u {
			u[j][v] = field(y, 2*j, 3)
		}
	}
	return u
}

// q2KRow finishes the sums acc of row r over a half of a sub-block.
func (s *superTile) q2KRow(r, half int, acc pair, at, scales reg.Register) steps {
	for v := range acc {
		VPMADDWD(Mem{Base: scales, Disp: q2Pairs + wide*half + 32*v}, acc[v], acc[v])
	}
	if half == 0 {
		return s.savePart(r, acc)
	}
	return s.q2KEnd(r, acc, at, scales, func() {
		for v := range acc {
			VPADDD(s.part(r, v), acc[v], acc[v])
			VCVTDQ2PS(acc[v], acc[v])
		}
	})
}

// q2KEnd emits the end of row r over a sub-block, whose sums first makes floats.
func (s *superTile) q2KEnd(r int, acc pair, at, scales reg.Register, first func()) steps {
	dx, sums := YMM(), YMM()
	minimum := func(v int) {
		low, scale := YMM(), YMM()
		VPMADDWD(Mem{Base: scales, Disp: q2Minima + 32*v}, sums, low)
		VCVTDQ2PS(low, low)
		VMULPS(s.local(q2D+wide+32*v), dx, scale)
		VFNMADD231PS(scale, low, acc[v])
		VMOVUPS(acc[v], s.chain(r, v))
	}
	return steps{first, func() {
		VBROADCASTSS(Mem{Base: at, Disp: scalesX + eight*r}, dx)
		for v := range acc {
			scale := YMM()
			VMULPS(s.local(q2D+32*v), dx, scale)
			VFMADD213PS(s.chain(r, v), scale, acc[v])
		}
	}, func() {
		VPBROADCASTD(Mem{Base: at, Disp: q2Sums + eight*r}, sums)
		minimum(0)
	}, func() {
		minimum(1)
	}}
}
