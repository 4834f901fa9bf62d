package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Two types whose weights, times their scales, still are bytes: one sum serves both halves of a sub-block.

// eachBytes emits the bytes of the lanes of four, which belong to sub-blocks and halves: every byte to all four of its lane,
// or, as words, to both words.
func eachBytes(four reg.VecVirtual, words bool, store func(b int, y reg.VecVirtual)) {
	for b := range 4 {
		pattern, y := ZMM(), ZMM()
		if words {
			VBROADCASTI32X4(byteTwice(b, false), pattern)
		} else {
			VBROADCASTI32X4(vector(fmt.Sprintf("byte%d", b), func(lane int) uint32 {
				return uint32(lane%4*4+b) * 0x01010101
			}), pattern)
		}
		VPSHUFB(pattern, four, y)
		store(b, y)
	}
}

// q2KDots returns Q2_K: weights of up to 3 times scales of up to 15. A multiplication of 16 bits is one of two bytes, as
// no product leaves its own.
func q2KDots() dotSuper {
	var low2 reg.VecVirtual
	const minima = 2
	return dotSuper{
		name: "Q2_K", head: q2Head, halves: 2, bits: 2 * wide, vectors: 3,
		setup: func(*dotTile) { low2 = each32("bytes03", 0x03030303) },
		scales: func(t *dotTile, at func(sub, vector int) Mem) {
			for i := range 4 {
				low, high := ZMM(), ZMM()
				VMOVDQU8(Mem{Base: t.w, Disp: 2*scaleBytes + wide*i}, low)
				VPSRLW(U8(4), low, high)
				VPANDD_BCST(constant("bytes0f", 0x0f0f0f0f), low, low)
				VPANDD_BCST(constant("bytes0f", 0x0f0f0f0f), high, high)
				eachBytes(low, true, func(b int, y reg.VecVirtual) { VMOVDQA64(y, at(2*i+b/2, b%2)) })
				for b := range 2 {
					pattern, y := ZMM(), ZMM()
					VBROADCASTI32X4(bytePair(b), pattern)
					VPSHUFB(pattern, high, y)
					VMOVDQA64(y, at(2*i+b, minima))
				}
			}
		},
		sums: func(t *dotTile) func(r int, sums Mem) {
			halves := t.halfSums(1)
			return func(r int, _ Mem) { // both of a sub-block in 16 bits each
				y, second := halves(r), YMM()
				VEXTRACTI64X4(U8(1), y, second)
				VPSLLD(U8(16), second, second)
				VPANDD_BCST(constant("lowhalf", 0xffff), y, y)
				VPORD(second, y.AsY(), second)
				VMOVDQU32(second, Mem{Base: t.frame, Disp: dotStarts + dotValues*r})
			}
		},
		block: func(t *dotTile) {
			t.beginZero()
			for half := range 2 {
				bits, factor := ZMM(), ZMM()
				VMOVDQU8(Mem{Base: t.w, Disp: wide * half}, bits)
				VMOVDQA64(t.scale(half), factor)
				for j := range halfQuads {
					u := ZMM()
					if j == 0 {
						VPANDD(bits, low2, u)
					} else {
						VPSRLW(U8(2*j), bits, u)
						VPANDD(u, low2, u)
					}
					VPMULLW(factor, u, u)
					t.dots(halfQuads*half+j, u)
				}
			}
		},
		finish: func(t *dotTile) {
			t.toFloats()
			t.chains()
			m := ZMM()
			VMOVDQA64(t.scale(minima), m)
			t.minima(func(r int) reg.VecVirtual {
				y := ZMM()
				VPBROADCASTD(t.value(dotStarts, r), y)
				VPMADDWD(m, y, y)
				VCVTDQ2PS(y, y)
				return y
			})
		},
	}
}

// bytePair returns the byte shuffle that brings the first or the last two bytes of each lane to words.
func bytePair(b int) Mem {
	return vector(fmt.Sprintf("bytes%d", 2*b), func(lane int) uint32 {
		first := uint32(lane%4*4 + 2*b)
		return first | 0x8000 | (first+1)<<16 | 0x80000000
	})
}

// The vectors of a sub-block of Q3_K.
const (
	q3Size  = 0 // of each half: magnitudes of scales in 16 bits, and what goes to the product with them
	q3Add   = 1
	q3Flip  = 4 // bits to flip in the first two vectors of weights
	q3Flip2 = 5 // in the third
	q3Less  = 127
)

// q3KDots returns Q3_K. A weight of -4 to 3 times a scale of -32 to 31, and 127 more, is a byte. Its bits are u = w + 4; where
// the scale is negative they are flipped to 3 - w. Then |scale| * u needs 127 less 4 or 3 times |scale|, and stays within
// 7*32, so that a multiplication of 16 bits is one of two bytes.
func q3KDots() dotSuper {
	var low3 reg.VecVirtual
	return dotSuper{
		name: "Q3_K", head: typeQ3K.head, halves: 1, bits: 3 * wide, vectors: 6,
		setup:  func(*dotTile) { low3 = each32("bytes07", 0x07070707) },
		scales: (*dotTile).q3KScales,
		sums:   func(t *dotTile) func(r int, sums Mem) { return t.starts(q3Less, 0) },
		block: func(t *dotTile) {
			t.begin(dotStarts)
			t.threeBits(low3)
		},
		finish: func(t *dotTile) {
			t.toFloats()
			t.chains()
		},
	}
}

// q3KScales emits what a super-block makes of its scales, coded as [superTile.q3KScales] says.
func (t *dotTile) q3KScales(at func(sub, vector int) Mem) {
	coded := Mem{Base: t.w, Disp: scaleBytes}
	for i := range 4 {
		s, high, size, add, flip, negative := ZMM(), ZMM(), ZMM(), ZMM(), ZMM(), K()
		VPSRLW(U8(i/2*4), coded.Offset(wide*(i%2)), s)
		VPANDD_BCST(constant("bytes0f", 0x0f0f0f0f), s, s)
		if i < 2 {
			VPSLLW(U8(4-2*i), coded.Offset(2*wide), high)
		} else {
			VPSRLW(U8(2*i-4), coded.Offset(2*wide), high)
		}
		VPANDD_BCST(constant("bytes30", 0x30303030), high, high)
		VPORD(high, s, s)
		VPBROADCASTD(constant("bytes20", 0x20202020), high)
		VPSUBB(high, s, s)
		VPMOVB2M(s, negative)
		VPMOVM2B(negative, flip)
		VPABSB(s, size)
		VPADDB(size, size, high)
		VPADDB(high, high, high)
		VPBROADCASTD(constant("bytes7f", 0x7f7f7f7f), add)
		VPSUBB(high, add, add)
		VPADDB(size, add, negative, add)
		eachBytes(size, true, func(b int, y reg.VecVirtual) { VMOVDQA64(y, at(2*i+b/2, q3Size+2*(b%2))) })
		eachBytes(add, false, func(b int, y reg.VecVirtual) { VMOVDQA64(y, at(2*i+b/2, q3Add+2*(b%2))) })
		first := ZMM()
		eachBytes(flip, false, func(b int, y reg.VecVirtual) {
			if b%2 == 0 {
				VPANDD_BCST(constant("bytes3f", 0x3f3f3f3f), y, first)
				return
			}
			VMOVDQA64(y, at(2*i+b/2, q3Flip2))
			VPANDD_BCST(constant("bytesc0", 0xc0c0c0c0), y, y)
			VPORD(first, y, y)
			VMOVDQA64(y, at(2*i+b/2, q3Flip))
		})
	}
}

// threeBits emits the sums of a sub-block of Q3_K, whose weights are coded as [superTile.threeBits] says.
func (t *dotTile) threeBits(low3 reg.VecVirtual) {
	load := func(v, flip int) reg.VecVirtual {
		y := ZMM()
		VMOVDQA64(t.scale(flip), y)
		VPXORD(Mem{Base: t.w, Disp: wide * v}, y, y)
		return y
	}
	times := func(quad int, u reg.VecVirtual) {
		half := quad / halfQuads
		VPMULLW(t.scale(q3Size+2*half), u, u)
		VPADDB(t.scale(q3Add+2*half), u, u)
		t.dots(quad, u)
	}
	third := load(2, q3Flip2)
	for v := range 2 {
		y := load(v, q3Flip)
		for j := range 2 {
			u := ZMM()
			if j == 0 {
				VPANDD(y, low3, u)
			} else {
				VPSRLW(U8(3), y, u)
				VPANDD(u, low3, u)
			}
			times(2*v+j, u)
		}
		last, bit := ZMM(), ZMM()
		VPSRLW(U8(6), y, last)
		VPANDD_BCST(constant("bytes03", 0x03030303), last, last)
		VPSRLW(U8(4+v), third, bit)
		VPANDD_BCST(constant("bytes04", 0x04040404), bit, bit)
		VPORD(bit, last, last)
		times(6+v, last)
	}
	for j := range 2 {
		u := ZMM()
		if j == 0 {
			VPANDD(third, low3, u)
		} else {
			VPSRLW(U8(3), third, u)
			VPANDD(u, low3, u)
		}
		times(4+j, u)
	}
}
