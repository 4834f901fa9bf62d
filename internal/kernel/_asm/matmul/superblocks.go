package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A superTile is the tile of a type with super-blocks: 8 sub-blocks of 32 inputs that share scales.
type superTile struct {
	*blockTile
	stride reg.GPVirtual // of the scales and sums of the activations, in bytes
}

// Values of a row and all sub-blocks are copied to the frame, [row][8], as are the weights' scales.
const (
	eight    = 32       // bytes of 8 values
	scalesX  = frameTop // scales of the activations
	superTop = scalesX + blockRows*eight
)

// loops emits the loops over super-blocks and sub-blocks: head begins a super-block and returns, in a
// register, where the scales of the first sub-block lie, scaleBytes apart. sub emits a sub-block of
// size bytes of weights; at points to the frame, a value further for each sub-block.
func (s *superTile) loops(size, scaleBytes int, head func() (scales reg.Register), sub func(at, scales reg.Register)) {
	nb, d := Load(Param("nb"), GP64()), Load(Param("d"), GP64())
	s.x = rows("x", strideOf("nb", 8), s.n)
	s.stride = strideOf("nb", 5)
	loop, inner := fmt.Sprintf("loop%d", s.n), fmt.Sprintf("sub%d", s.n)

	Label(loop)
	s.eachRow(d, func(r int, p Mem) {
		y := YMM()
		VMOVUPS(p, y)
		VMOVUPS(y, s.local(scalesX+eight*r))
	})
	scales, at, left := head(), GP64(), GP64()
	MOVQ(s.frame, at)
	MOVQ(U32(8), left)

	Label(inner)
	s.prefetch(size / 64)
	sub(at, scales)
	ADDQ(U32(size), s.w)
	ADDQ(U32(scaleBytes), scales)
	ADDQ(U8(4), at)
	s.x.advance(32)
	DECQ(left)
	JNZ(LabelRef(inner))
	DECQ(nb)
	JNZ(LabelRef(loop))
}

// eachRow emits do with the 8 values of a super-block of each row, and moves p to the next super-block.
func (s *superTile) eachRow(p reg.Register, do func(r int, values Mem)) {
	row := GP64()
	MOVQ(p, row)
	for r := range s.n {
		do(r, Mem{Base: row})
		if r < s.n-1 {
			ADDQ(s.stride, row)
		}
	}
	ADDQ(U8(eight), p)
}

// halves emits the conversion of n times 16 half floats at the start of a super-block to the frame.
func (s *superTile) halves(n, to int) {
	for i := range n * vectors {
		y := YMM()
		VCVTPH2PS(Mem{Base: s.w, Disp: 16 * i}, y)
		VMOVUPS(y, s.local(to+32*i))
	}
}

// pairs emits the scales of four sub-blocks, one in each byte of a lane, to the frame, step bytes
// apart: each scale twice in 16 bits.
func (s *superTile) pairs(four reg.VecVirtual, to, step int, signed bool) {
	for i := range 4 {
		y := YMM()
		VPSHUFB(byteTwice(i, signed), four, y)
		if signed {
			VPSRAW(U8(8), y, y)
		}
		VMOVDQU(y, s.local(to+step*i))
	}
}

// byteTwice returns the byte shuffle that brings byte i of each lane to both its halves: as their high
// bytes or as their low ones, the others being zero.
func byteTwice(i int, high bool) Mem {
	return vector(fmt.Sprintf("byte%dtwice%v", i, high), func(lane int) uint32 {
		half := uint32(lane%4*4+i) | 0x8000
		if high {
			half = half<<8 | 0x80
		}
		return half&0xffff | half<<16
	})
}

// The frame of a tile of Q4_K.
const (
	q4Sums   = superTop                 // [row][8] sums of the activations as floats
	q4D      = q4Sums + blockRows*eight // [16] d, then [16] dmin
	q4Scales = q4D + 2*wide             // [8 sub-blocks] of the next two
	q4Pairs  = 0                        // [16] scales, twice in 16 bits
	q4Minima = wide                     // [16] minima as floats
	q4Step   = 2 * wide
	q4Frame  = q4Scales + 8*q4Step

	q4Head = 2*scaleBytes + 3*wide // bytes of a packed super-block before its nibbles
)

// q4KTile emits the product of n rows by a group of Q4_K weights.
//
// The product of a minimum and a sum of activations is an exact float. Where it is zero its sign may differ
// from that of the integer product, which changes nothing: no chain is ever -0.
func q4KTile() {
	blockFunction("Q4_K", "x *int8, d *float32, sum *int32", q4Frame, func(t *blockTile) {
		s, sum := &superTile{blockTile: t}, Load(Param("sum"), GP64())
		s.loops(halfQuads*wide, q4Step, func() reg.Register {
			s.halves(2, q4D)
			return s.q4KHead(sum)
		}, func(at, scales reg.Register) {
			s.half(s.nibbles(0, 0), 0, nil, s.savePart)
			s.half(s.nibbles(0, 1), 1, nil, func(r int, acc pair) steps { return s.q4KRow(r, acc, at, scales) })
		})
	})
}

// q4KHead emits what begins a super-block but d and dmin, and returns where its scales are.
func (s *superTile) q4KHead(sum reg.Register) reg.Register {
	s.prefetch(q4Head / 64)
	s.eachRow(sum, func(r int, p Mem) {
		y := YMM()
		VCVTDQ2PS(p, y)
		VMOVUPS(y, s.local(q4Sums+eight*r))
	})
	s.q4KScales()
	scales := GP64()
	LEAQ(s.local(q4Scales), scales)
	ADDQ(U32(q4Head), s.w)
	return scales
}

// q4KRow finishes the sums acc of row r over a sub-block.
func (s *superTile) q4KRow(r int, acc pair, at, scales reg.Register) steps {
	dx, sum := YMM(), YMM()
	minimum := func(v int) {
		low, scale := YMM(), YMM()
		VMULPS(Mem{Base: scales, Disp: q4Minima + 32*v}, sum, low)
		VMULPS(s.local(q4D+wide+32*v), dx, scale)
		VFNMADD231PS(scale, low, acc[v])
		VMOVUPS(acc[v], s.chain(r, v))
	}
	return steps{func() {
		for v := range acc {
			VPADDW(s.part(r, v), acc[v], acc[v])
			VPMADDWD(Mem{Base: scales, Disp: q4Pairs + 32*v}, acc[v], acc[v])
		}
	}, func() {
		VBROADCASTSS(Mem{Base: at, Disp: scalesX + eight*r}, dx)
		for v := range acc {
			scale := YMM()
			VCVTDQ2PS(acc[v], acc[v])
			VMULPS(s.local(q4D+32*v), dx, scale)
			VFMADD213PS(s.chain(r, v), scale, acc[v])
		}
	}, func() {
		VBROADCASTSS(Mem{Base: at, Disp: q4Sums + eight*r}, sum)
		minimum(0)
	}, func() {
		minimum(1)
	}}
}

// q4KScales emits the scales and minima of a super-block to the frame. Three vectors hold the file's 12
// bytes for 8 outputs, four of an output in each lane.
func (s *superTile) q4KScales() {
	low6, low4, high2 := YMM(), YMM(), YMM()
	VMOVDQU(everywhere(0x3f), low6)
	VMOVDQU(everywhere(0x0f), low4)
	VMOVDQU(everywhere(0x30), high2)
	for v := range vectors {
		var coded [3]reg.VecVirtual
		for i := range coded {
			coded[i] = YMM()
			VMOVDQU(Mem{Base: s.w, Disp: 2*scaleBytes + wide*i + 32*v}, coded[i])
		}
		four := func(i int) (low, high reg.VecVirtual) { // values of sub-blocks 0 to 3, and 4 to 7
			low, high, top := YMM(), YMM(), YMM()
			VPAND(low6, coded[i], low)
			VPSRLW(U8(2), coded[i], top)
			VPAND(high2, top, top)
			VPAND(low4, coded[2], high)
			VPOR(top, high, high)
			return low, high
		}
		to := q4Scales + 32*v
		low, high := four(0)
		s.pairs(low, to+q4Pairs, q4Step, false)
		s.pairs(high, to+q4Pairs+4*q4Step, q4Step, false)
		VPSRLW(U8(4), coded[2], coded[2])
		low, high = four(1)
		s.minima(low, to+q4Minima)
		s.minima(high, to+q4Minima+4*q4Step)
	}
}

// minima emits the minima of four sub-blocks, one in each byte of a lane, to the frame.
func (s *superTile) minima(four reg.VecVirtual, to int) {
	lowest := vector("lowest", func(int) uint32 { return 0xff })
	for i := range 4 {
		y := YMM()
		VPSRLD(U8(8*i), four, y)
		VPAND(lowest, y, y)
		VCVTDQ2PS(y, y)
		VMOVUPS(y, s.local(to+q4Step*i))
	}
}

// The frame of a tile of Q6_K.
const (
	q6Sums  = superTop                   // [half][row][8] 32 times the sums of 16 activations
	q6D     = q6Sums + 2*blockRows*eight // [16] d
	q6Pairs = q6D + wide                 // [8 sub-blocks][2 halves][16] scales, twice in 16 bits
	q6Frame = q6Pairs + 16*wide

	q6Head = scaleBytes + 4*wide // bytes of a packed super-block before its bits
	q6Half = 3 * wide            // of half a sub-block
)

// q6KTile emits the product of n rows by a group of Q6_K weights.
//
// A weight is six bits less 32: 32 times the sums of the activations are subtracted in 16 bits, first of
// all, so that no sum over 4 quads leaves 8 * 32 * 127.
func q6KTile() {
	blockFunction("Q6_K", "x *int8, d *float32", q6Frame, func(t *blockTile) {
		s := &superTile{blockTile: t}
		s.loops(2*q6Half, 2*wide, func() reg.Register {
			s.halves(1, q6D)
			return s.q6KHead()
		}, func(at, scales reg.Register) {
			for half := range 2 {
				minus := func(r int) reg.VecVirtual {
					y := YMM()
					VPBROADCASTD(Mem{Base: at, Disp: q6Sums + eight*(blockRows*half+r)}, y)
					return y
				}
				s.half(s.sixBits(q6Half*half), half, minus, func(r int, acc pair) steps {
					return s.q6KRow(r, half, acc, at, scales)
				})
			}
		})
	})
}

// q6KHead emits what begins a super-block but d, and returns where its scales are.
func (s *superTile) q6KHead() reg.Register {
	s.prefetch(q6Head / 64)
	s.q6KSums()
	for i := range 4 * vectors {
		four := YMM()
		VMOVDQU(Mem{Base: s.w, Disp: scaleBytes + 32*i}, four)
		s.pairs(four, q6Pairs+4*wide*(i/vectors)+32*(i%vectors), wide, true)
	}
	scales := GP64()
	LEAQ(s.local(q6Pairs), scales)
	ADDQ(U32(q6Head), s.w)
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

// q6KSums emits 32 times the sums of each 16 activations, in 16 bits and apart for the first and the
// last two of each quad, as the products come.
func (s *superTile) q6KSums() {
	c32 := YMM()
	VMOVDQU(everywhere(32), c32)
	for r := range s.n {
		for g := 0; g < 8; g += 4 {
			var p [4]reg.VecVirtual // of a sub-block each: a quad in each lane
			for i := range p {
				p[i] = YMM()
				VPMADDUBSW(s.x.at(r, 32*(g+i)), c32, p[i])
			}
			ab, cd := fold(VPUNPCKLDQ, VPUNPCKHDQ, p[0], p[1]), fold(VPUNPCKLDQ, VPUNPCKHDQ, p[2], p[3])
			sums := fold(VPUNPCKLQDQ, VPUNPCKHQDQ, ab, cd)
			to := q6Sums + eight*r + 4*g
			VMOVDQU(sums.AsX(), s.local(to))
			VEXTRACTI128(U8(1), sums, s.local(to+blockRows*eight))
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

// sixBits emits the weights of half a sub-block at disp: three quads in the low 6 bits of bytes, the
// fourth in their high 2 bits.
func (s *superTile) sixBits(disp int) (u weights) {
	low6 := YMM()
	VMOVDQU(everywhere(0x3f), low6)
	for v := range vectors {
		for j := range 3 {
			y := YMM()
			u[j][v] = YMM()
			VMOVDQU(Mem{Base: s.w, Disp: disp + wide*j + 32*v}, y)
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
