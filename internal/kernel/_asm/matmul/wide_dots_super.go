package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A dotSuper is a type of super-blocks.
type dotSuper struct {
	name    string
	head    int // bytes of a packed super-block of 16 outputs before its bits
	halves  int // half floats of an output: d, and perhaps dmin
	bits    int // bytes of a sub-block of 16 outputs
	vectors int // of scales of a sub-block in the frame
	setup   func(t *dotTile)
	scales  func(t *dotTile, at func(sub, vector int) Mem)
	sums    func(t *dotTile) func(r int, sums Mem) // what a super-block needs of the sums of a row's activations
	block   func(t *dotTile)                       // the sums of a sub-block, as floats or integers
	finish  func(t *dotTile)
}

// The frame has d and dmin of a super-block behind the values of rows, then the scales of sub-blocks.
const (
	dotD      = dotTop
	dotDMin   = dotD + wide
	dotScaled = dotDMin + wide
)

// superTile emits the product of n rows by a group of weights of a type.
func (k dotSuper) tile() {
	dotFunction(k.name, dotScaled+8*k.vectors*wide, func(t *dotTile) {
		nb, stride := Load(Param("nb"), GP64()), strideOf("nb", 5)
		d, sum := Load(Param("d"), GP64()), Load(Param("sum"), GP64())
		t.x = rows("x", strideOf("nb", 8), t.n)
		if k.setup != nil {
			k.setup(t)
		}
		outer, inner := fmt.Sprintf("super%d", t.n), fmt.Sprintf("sub%d", t.n)
		Label(outer)
		for i := range (k.head + 63) / 64 {
			t.prefetchLine(i)
		}
		for i := range k.halves {
			y := ZMM()
			VCVTPH2PS(Mem{Base: t.w, Disp: scaleBytes * i}, y)
			VMOVAPS(y, Mem{Base: t.frame, Disp: dotD + wide*i})
		}
		k.scales(t, func(sub, vector int) Mem {
			return Mem{Base: t.frame, Disp: dotScaled + wide*(k.vectors*sub+vector)}
		})
		t.prepare(d, sum, stride, eight, k.sums(t))
		left := GP64()
		t.scales = GP64()
		LEAQ(Mem{Base: t.frame, Disp: dotScaled}, t.scales)
		ADDQ(U32(k.head), t.w)
		MOVQ(U32(8), left)
		Label(inner)
		t.lines, t.next = k.bits/64, 0
		k.block(t)
		k.finish(t)
		ADDQ(U32(k.bits), t.w)
		ADDQ(U32(k.vectors*wide), t.scales)
		ADDQ(U8(4), t.at)
		t.x.advance(32)
		DECQ(left)
		JNZ(LabelRef(inner))
		DECQ(nb)
		JNZ(LabelRef(outer))
	})
}

// scale returns a vector of scales of the sub-block.
func (t *dotTile) scale(i int) Mem { return Mem{Base: t.scales, Disp: wide * i} }

// beginMagic emits sums that start from the bits of dotMagic.
func (t *dotTile) beginMagic() {
	t.acc = registers(t.n)
	VPBROADCASTD(constant("magic", dotMagic), t.acc[0])
	fill(t.acc[0], t.acc[1:])
}

// scaled emits the sums of a block, which started from dotMagic, times integers, exactly: vectors i and i+1 of the sub-block
// are the integers as floats, and these times -dotMagic.
func (t *dotTile) scaled(i int) {
	factor := ZMM()
	VMOVAPS(t.scale(i), factor)
	for _, acc := range t.acc {
		VFMADD213PS(t.scale(i+1), factor, acc)
	}
}

// toFloats emits the sums of a block as floats.
func (t *dotTile) toFloats() {
	for _, acc := range t.acc {
		VCVTDQ2PS(acc, acc)
	}
}

// chains emits the steps of the chains for sums that are floats.
func (t *dotTile) chains() {
	d := ZMM()
	VMOVAPS(Mem{Base: t.frame, Disp: dotD}, d)
	for r, acc := range t.acc {
		scale := ZMM()
		VMULPS_BCST(t.value(dotScales, r), d, scale)
		VFMADD231PS(acc, scale, t.chain[r])
	}
}

// minima emits the steps of the chains for minima: low emits the integers of a row as floats.
func (t *dotTile) minima(low func(r int) reg.VecVirtual) {
	dmin := ZMM()
	VMOVAPS(Mem{Base: t.frame, Disp: dotDMin}, dmin)
	for r := range t.acc {
		scale, y := ZMM(), low(r)
		VMULPS_BCST(t.value(dotScales, r), dmin, scale)
		VFNMADD231PS(y, scale, t.chain[r])
	}
}

// storeScaled emits scales as floats to at, and times -dotMagic to timesMagic.
func storeScaled(y reg.VecVirtual, at, timesMagic Mem) {
	VCVTDQ2PS(y, y)
	VMOVAPS(y, at)
	VMULPS_BCST(constant("minusmagic", dotMagic|minusBits), y, y)
	VMOVAPS(y, timesMagic)
}

var dotSupers = []dotSuper{
	nibbleDots("Q4_K", 4*wide, func() dotWeights { return dotNibbles(nil) }),
	nibbleDots("Q5_K", 5*wide, dotFiveBits),
	q6KDots(),
	q3KDots(),
	q2KDots(),
	iq4XSDots(),
}

// nibbleDots returns a type like Q4_K. Its sums stay within 32*31*127, and times a scale within 2^23.
func nibbleDots(name string, bits int, weights func() dotWeights) dotSuper {
	var emit dotWeights
	return dotSuper{
		name: name, head: q4Head, halves: 2, bits: bits, vectors: 3,
		setup:  func(*dotTile) { emit = weights() },
		scales: (*dotTile).q4KScales,
		sums:   func(t *dotTile) func(r int, sums Mem) { return t.floats },
		block: func(t *dotTile) {
			t.beginMagic()
			emit(t, 0)
		},
		finish: func(t *dotTile) {
			t.scaled(0)
			t.chains()
			m := ZMM()
			VMOVAPS(t.scale(2), m)
			t.minima(func(r int) reg.VecVirtual {
				y := ZMM()
				VMULPS_BCST(t.value(dotStarts, r), m, y)
				return y
			})
		},
	}
}

// q4KScales emits the scales and minima of a super-block as floats.
func (t *dotTile) q4KScales(at func(sub, vector int) Mem) {
	t.q4KIntegers(func(sub, i int, y reg.VecVirtual) {
		if i == 0 {
			storeScaled(y, at(sub, 0), at(sub, 1))
			return
		}
		VCVTDQ2PS(y, y)
		VMOVAPS(y, at(sub, 2))
	})
}

// q4KIntegers emits the scales (i 0) and minima (i 1) of a super-block, coded as [superTile.q4KScales] says.
func (t *dotTile) q4KIntegers(each func(sub, i int, y reg.VecVirtual)) {
	var coded [3]reg.VecVirtual
	for i := range coded {
		coded[i] = ZMM()
		VMOVDQU8(Mem{Base: t.w, Disp: 2*scaleBytes + wide*i}, coded[i])
	}
	for i, c := range coded[:2] {
		low, high := ZMM(), ZMM()
		VPANDD_BCST(constant("bytes3f", 0x3f3f3f3f), c, low)
		VPANDD_BCST(constant("bytes0f", 0x0f0f0f0f), coded[2], high)
		VPSRLW(U8(4), coded[2], coded[2])
		VPSRLW(U8(2), c, c)
		VPANDD_BCST(constant("bytes30", 0x30303030), c, c)
		VPORD(c, high, high)
		for sub := range 8 {
			y := ZMM()
			VPSRLD(U8(8*(sub%4)), []reg.VecVirtual{low, high}[sub/4], y)
			VPANDD_BCST(constant("lowest", 0xff), y, y)
			each(sub, i, y)
		}
	}
}

// q6KDots returns Q6_K: two sums of a sub-block, each with a scale, which stay within 16*32*127, and with the scales within
// 2^24 together.
func q6KDots() dotSuper {
	var low6 reg.VecVirtual
	var tops [3]reg.VecVirtual
	return dotSuper{
		name: "Q6_K", head: typeQ6K.head, halves: 1, bits: typeQ6K.bits, vectors: 3,
		setup: func(*dotTile) {
			low6 = each32("bytes3f", 0x3f3f3f3f)
			for j := range tops {
				tops[j] = each32(fmt.Sprintf("bytes%02x", 3<<(2*j)), 0x01010101*3<<(2*j))
			}
		},
		scales: func(t *dotTile, at func(sub, vector int) Mem) {
			for i := range 16 {
				y := ZMM()
				VPSLLD(U8(24-i%4*8), Mem{Base: t.w, Disp: scaleBytes + wide*(i/4)}, y)
				VPSRAD(U8(24), y, y)
				if i%2 == 0 {
					storeScaled(y, at(i/2, 0), at(i/2, 1))
					continue
				}
				VCVTDQ2PS(y, y)
				VMOVAPS(y, at(i/2, 2))
			}
		},
		sums: func(t *dotTile) func(r int, sums Mem) {
			halves := t.halfSums(typeQ6K.less)
			from := ZMM()
			VMOVDQU32(magicHalf(), from)
			return func(r int, _ Mem) {
				y := halves(r)
				VPSUBD(y, from, y)
				VMOVDQU32(y, Mem{Base: t.frame, Disp: dotStarts + dotValues*r})
			}
		},
		block: func(t *dotTile) {
			t.begin(dotStarts)
			t.sixBits(0, low6, tops)
			t.scaled(0)
			for r, acc := range t.acc {
				VMOVAPS(acc, Mem{Base: t.frame, Disp: dotMore + wide*r})
			}
			t.begin(dotStarts + eight)
			t.sixBits(1, low6, tops)
		},
		finish: func(t *dotTile) {
			t.toFloats()
			factor := ZMM()
			VMOVAPS(t.scale(2), factor)
			for r, acc := range t.acc {
				VFMADD213PS(Mem{Base: t.frame, Disp: dotMore + wide*r}, factor, acc)
			}
			t.chains()
		},
	}
}

// magicHalf returns dotMagic for 8 lanes and 0 for the others.
func magicHalf() Mem {
	return words16("magichalf", func(lane int) uint32 { return dotMagic * uint32(1-lane/8) })
}

// words16 returns a constant of 16 words of 32 bits.
func words16(name string, lane func(i int) uint32) Mem {
	if _, ok := vectorNamed[name]; !ok {
		values := make([]uint32, 16)
		for i := range values {
			values[i] = lane(i)
		}
		vectorNamed[name] = words(name, values)
	}
	return vectorNamed[name]
}

// sixBits emits the sums of half a sub-block, whose weights are coded as [superTile.sixBits] says.
func (t *dotTile) sixBits(half int, low6 reg.VecVirtual, tops [3]reg.VecVirtual) {
	const orAnd = 0xf8 // the destination, or both sources
	last := ZMM()
	for j, top := range tops {
		y, low := ZMM(), ZMM()
		VMOVDQU8(Mem{Base: t.w, Disp: wide * (3*half + j)}, y)
		VPANDD(y, low6, low)
		t.dots(halfQuads*half+j, low)
		VPSRLW(U8(6-2*j), y, y)
		if j == 0 {
			VPANDD(top, y, last)
			continue
		}
		VPTERNLOGD(U8(orAnd), top, y, last)
	}
	t.dots(halfQuads*half+3, last)
}

// halfSums returns what emits the sums of 16 activations of a row times a number: of the first halves of the 8 sub-blocks,
// then of the second halves.
func (t *dotTile) halfSums(times uint32) func(r int) reg.VecVirtual {
	factor, order, nothing := ZMM(), ZMM(), ZMM()
	zero(nothing)
	VPBROADCASTD(constant(fmt.Sprintf("bytes%02x", times), times*0x01010101), factor)
	VMOVDQU32(words16("halves", func(lane int) uint32 { return uint32(lane%2*8 + lane/8*4 + lane%8/2) }), order)
	return func(r int) reg.VecVirtual {
		p := registers(4) // of two sub-blocks each: the sums of quads, a half in each lane of 128 bits
		fill(nothing, p)
		for i := range p {
			VPDPBUSD(t.x.at(r, 64*i), factor, p[i])
		}
		ab, cd := foldWide(VPUNPCKLDQ, VPUNPCKHDQ, p[0], p[1]), foldWide(VPUNPCKLDQ, VPUNPCKHDQ, p[2], p[3])
		y := foldWide(VPUNPCKLQDQ, VPUNPCKHQDQ, ab, cd)
		VPERMD(y, order, y)
		return y
	}
}

// foldWide emits the sum of what two instructions interleave from a and b.
func foldWide(low, high func(...Op), a, b reg.VecVirtual) reg.VecVirtual {
	l, h := ZMM(), ZMM()
	low(b, a, l)
	high(b, a, h)
	VPADDD(h, l, l)
	return l
}

// iq4XSDots returns IQ4_XS, whose sums stay within 32*127*127, and times a scale within 2^24.
func iq4XSDots() dotSuper {
	var weights dotWeights
	return dotSuper{
		name: "IQ4_XS", head: xsHead, halves: 1, bits: 4 * wide, vectors: 2,
		setup: func(*dotTile) { weights = dotIQ4() },
		scales: func(t *dotTile, at func(sub, vector int) Mem) {
			high, low := ZMM(), ZMM()
			VPMOVZXWD(Mem{Base: t.w, Disp: scaleBytes}, high)
			VPSLLD(U8(4), high, high)
			VMOVDQU8(Mem{Base: t.w, Disp: 2 * scaleBytes}, low)
			for sub := range 8 {
				y, top := ZMM(), ZMM()
				VPSRLD(U8(4*sub), low, y)
				VPANDD_BCST(constant("low4", 0x0f), y, y)
				VPSRLD(U8(2*sub), high, top)
				VPANDD_BCST(constant("bits45", 0x30), top, top)
				VPORD(top, y, y)
				VPSUBD_BCST(constant("less32", 32), y, y)
				storeScaled(y, at(sub, 0), at(sub, 1))
			}
		},
		sums: func(t *dotTile) func(r int, sums Mem) { return t.starts(128, dotMagic) },
		block: func(t *dotTile) {
			t.begin(dotStarts)
			weights(t, 0)
		},
		finish: func(t *dotTile) {
			t.scaled(0)
			t.chains()
		},
	}
}
