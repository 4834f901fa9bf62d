package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The tiles of AVX-VNNI are those of AVX2 of 8 rows with another middle: VPDPBUSD adds the products of four unsigned weights
// and activations to 32 bits, so no sum needs widening. Signed weights become unsigned ones that are too large by 128.
//
// The sums begin at the bits of the float anchor less what the weights are too large by, times the sum of the activations.
// So they end as the bits of a float, from which the anchor is subtracted: what VCVTDQ2PS gives, but on another port
// than the dot products.

// anchor is the bits of 1.5 * 2^23: a sum within 2^22 that is added to them is added to the float.
const anchor = 0x4b400000

func anchors() Mem { return vector("anchor", func(int) uint32 { return anchor }) }

func dotTiles() {
	suffix = "VNNI256"
	for _, k := range dotTypes32 {
		dotTile32(k)
	}
	for _, k := range []nibbleSuper{typeQ4K, typeQ5K} {
		dotNibbleSuper(k)
	}
	for _, k := range []signedSuper{typeQ6K, typeQ3K} {
		dotSignedSuper(k)
	}
	dotQ2K()
	dotIQ4XS()
}

// dots emits the sums over 16 inputs of the weights u times the activations of each row, in 32 bits, on top of what begin
// puts in acc, and then the steps of finish, spread over the next row.
func (t *blockTile) dots(u weights, half int, begin func(r int, acc pair), finish func(r int, acc pair) steps) {
	var late steps
	for r := range t.n {
		acc := vectorPair()
		begin(r, acc)
		for j := range u {
			x := YMM()
			VPBROADCASTD(t.x.at(r, 16*half+4*j), x)
			for v := range acc {
				VPDPBUSD(x, u[j][v], acc[v])
			}
			late = late.take(len(u) - j)
		}
		late = finish(r, acc)
	}
	late.take(1)
}

// block emits dots over a block of 32 inputs, whose sums go on from the first half to the second.
func (t *blockTile) block(u func(half int) weights, begin func(r int, acc pair), finish func(r int, acc pair) steps) {
	t.dots(u(0), 0, begin, t.savePart)
	t.dots(u(1), 1, func(r int, acc pair) {
		for v := range acc {
			VMOVDQU(t.part(r, v), acc[v])
		}
	}, finish)
}

// beginAnchor begins sums that are exact.
func beginAnchor(_ int, acc pair) {
	for v := range acc {
		VMOVDQU(anchors(), acc[v])
	}
}

// beginAt returns what begins sums at a value in memory for each row.
func beginAt(value func(r int) Mem) func(r int, acc pair) {
	return func(r int, acc pair) {
		for v := range acc {
			VPBROADCASTD(value(r), acc[v])
		}
	}
}

// floats emits the sums of acc as floats.
func floats(acc pair) {
	for v := range acc {
		VSUBPS(anchors(), acc[v], acc[v])
	}
}

// beginLess returns what sums begin at where 32-bit pairs of words are to be subtracted.
func beginLess(words reg.VecVirtual) reg.VecVirtual {
	begin := YMM()
	VPMADDWD(vector("ones", func(int) uint32 { return 1<<16 | 1 }), words, words)
	VMOVDQU(anchors(), begin)
	VPSUBD(words, begin, begin)
	return begin
}

// signedFloats emits the scales of four halves of sub-blocks, a signed byte of each lane, to the frame as floats.
func (s *superTile) signedFloats(four reg.VecVirtual, to int) {
	for i := range 4 {
		y := YMM()
		VPSLLD(U8(24-8*i), four, y)
		VPSRAD(U8(24), y, y)
		VCVTDQ2PS(y, y)
		VMOVUPS(y, s.local(to+wide*i))
	}
}

// dotTypes32 are types32, and those whose weights are signed bytes, or become such by a codebook.
var dotTypes32 = append([]type32{
	{name: "Q8_0", halves: 1, bytes: 2, bits: 8 * wide, weights: (*blockTile).bytes, less: 128},
	{name: "IQ4_NL", halves: 1, bytes: 2, bits: 4 * wide, weights: (*blockTile).iq4, less: 128},
}, types32...)

// bytes emits the weights of half a block of signed bytes at disp.
func (t *blockTile) bytes(disp, half int) (u weights) {
	top := YMM()
	VMOVDQU(everywhere(0x80), top)
	for j := range u {
		for v := range u[j] {
			u[j][v] = YMM()
			VPXOR(Mem{Base: t.w, Disp: disp + wide*(halfQuads*half+j) + 32*v}, top, u[j][v])
		}
	}
	return u
}

// iq4 emits the weights of half a block of IQ4_NL at disp.
func (t *blockTile) iq4(disp, half int) weights {
	return t.coded(codebook("iq4above", iq4Values, 128), disp, half)
}

// The frame of a tile of types32 has, of the next 8 blocks, [row][8] values of the activations.
const (
	dot32X     = scales32 + 2*wide          // their scales
	dot32Sum   = dot32X + blockRows*eight   // what the sums begin at, or the sums of the activations as floats
	dot32Frame = dot32Sum + blockRows*eight // bytes
)

// dotTile32 emits the product of n rows by a group of weights of a type.
//
// What belongs to a row and block is copied to the frame for 8 blocks at a time. A load from the activations' own arrays,
// which advance by 4 bytes, waits for the stores of the chains for many blocks where the lower 12 bits of both addresses are equal.
func dotTile32(k type32) {
	blockFunction(k.name, "x *int8, d *float32, sum *int32", dot32Frame, func(t *blockTile) {
		s := &superTile{blockTile: t, stride: strideOf("nb", 2)}
		nb, d, sum := Load(Param("nb"), GP64()), Load(Param("d"), GP64()), Load(Param("sum"), GP64())
		s.x = rows("x", strideOf("nb", 5), t.n)
		head := 16 * k.bytes
		loop, inner := fmt.Sprintf("loop%d", t.n), fmt.Sprintf("block%d", t.n)
		Label(loop)
		left := s.dotHead32(k, nb, d, sum)
		at := GP64()
		MOVQ(t.frame, at)
		Label(inner)
		t.prefetch((head + k.bits + 63) / 64)
		t.scales32(k)
		begin := beginAnchor
		if k.less > 0 {
			begin = beginAt(func(r int) Mem { return Mem{Base: at, Disp: dot32Sum + eight*r} })
		}
		t.block(func(half int) weights { return k.weights(t, head, half) }, begin, func(r int, acc pair) steps {
			return t.dotRow32(k, r, acc, at)
		})
		ADDQ(U32(head+k.bits), t.w)
		t.x.advance(32)
		ADDQ(U8(4), at)
		DECQ(left)
		JNZ(LabelRef(inner))
		SUBQ(U8(8), nb)
		JG(LabelRef(loop))
	})
}

// dotHead32 emits the copies for the next blocks and returns how many these are: 8, or as many as are left.
func (s *superTile) dotHead32(k type32, nb, d, sum reg.Register) reg.Register {
	left, from, table, mask := GP64(), GP64(), GP64(), YMM()
	MOVQ(U32(8), left)
	CMPQ(nb, left)
	CMOVQLT(nb, left)
	LEAQ(masks(), table)
	MOVQ(left, from)
	NEGQ(from)
	VMOVDQU(Mem{Base: table, Index: from, Scale: 4, Disp: eight}, mask)
	s.eachRow(d, func(r int, p Mem) {
		y := YMM()
		VPMASKMOVD(p, mask, y)
		VMOVDQU(y, s.local(dot32X+eight*r))
	})
	s.eachRow(sum, func(r int, p Mem) {
		y := YMM()
		VPMASKMOVD(p, mask, y)
		if k.less > 0 {
			VPMADDWD(vector(fmt.Sprintf("minus%d", k.less), func(int) uint32 { return -k.less & 0xffff }), y, y)
			VPADDD(anchors(), y, y)
		} else {
			VCVTDQ2PS(y, y)
		}
		VMOVDQU(y, s.local(dot32Sum+eight*r))
	})
	return left
}

// masks returns 8 words of ones, then 8 zeros.
func masks() Mem {
	if _, ok := vectorNamed["masks"]; !ok {
		var lanes [16]uint32
		for i := range 8 {
			lanes[i] = 1<<32 - 1
		}
		vectorNamed["masks"] = words("masks", lanes[:])
	}
	return vectorNamed["masks"]
}

// dotRow32 finishes the sums acc of row r over a block.
func (t *blockTile) dotRow32(k type32, r int, acc pair, at reg.Register) steps {
	dx, sums, scale := YMM(), YMM(), vectorPair()
	first := func() {
		floats(acc)
		VBROADCASTSS(Mem{Base: at, Disp: dot32X + eight*r}, dx)
	}
	if k.halves < 2 {
		return steps{first, func() {
			for v := range acc {
				VMULPS(t.local(scales32+32*v), dx, scale[v])
			}
		}, func() {
			for v := range acc {
				VFMADD213PS(t.chain(r, v), scale[v], acc[v])
				VMOVUPS(acc[v], t.chain(r, v))
			}
		}}
	}
	return steps{first, func() {
		for v := range acc {
			VMULPS(t.local(scales32+32*v), dx, scale[v])
			VFMADD213PS(t.chain(r, v), scale[v], acc[v])
		}
	}, func() {
		VBROADCASTSS(Mem{Base: at, Disp: dot32Sum + eight*r}, sums)
	}, func() {
		for v := range acc {
			offset := YMM()
			VMULPS(t.local(scales32+wide+32*v), dx, offset)
			VFMADD231PS(offset, sums, acc[v])
			VMOVUPS(acc[v], t.chain(r, v))
		}
	}}
}

// dotNibbleSuper emits the product of n rows by a group of Q4_K or Q5_K weights, as [nibbleSuperTile] does. The product of a
// scale and a sum is an exact float too.
func dotNibbleSuper(k nibbleSuper) {
	blockFunction(k.name, "x *int8, d *float32, sum *int32", q4Frame, func(t *blockTile) {
		s, sum := &superTile{blockTile: t, floats: true}, Load(Param("sum"), GP64())
		s.loops(k.bits, q4Step, func() reg.Register {
			s.halves(2, q4D)
			return s.q4KHead(sum)
		}, func(at, scales reg.Register) {
			s.block(func(half int) weights { return k.weights(t, 0, half) }, beginAnchor, func(r int, acc pair) steps {
				return s.q4KEnd(r, acc, at, scales, func() { floats(acc) }, func(v int) {
					VMULPS(Mem{Base: scales, Disp: q4Pairs + 32*v}, acc[v], acc[v])
				})
			})
		})
	})
}

// dotSignedSuper emits the product of n rows by a group of Q6_K or Q3_K weights, as [signedSuperTile] does. The products of
// scales and sums are exact floats, and so are their sums.
func dotSignedSuper(k signedSuper) {
	blockFunction(k.name, "x *int8, d *float32", q6Frame, func(t *blockTile) {
		s := &superTile{blockTile: t, floats: true}
		s.loops(k.bits, 2*wide, func() reg.Register {
			s.halves(1, q6D)
			return s.signedHead(k)
		}, func(at, scales reg.Register) {
			for half := range 2 {
				begin := beginAt(func(r int) Mem { return Mem{Base: at, Disp: q6Sums + eight*(blockRows*half+r)} })
				s.dots(k.weights(s, half), half, begin, func(r int, acc pair) steps {
					return s.dotSignedEnd(r, half, acc, at, scales)
				})
			}
		})
	})
}

// dotSignedEnd finishes the sums acc of row r over a half of a sub-block.
func (s *superTile) dotSignedEnd(r, half int, acc pair, at, scales reg.Register) steps {
	own := func(v int) Mem { return Mem{Base: scales, Disp: wide*half + 32*v} }
	if half == 0 {
		return steps{func() { floats(acc) }, func() {
			for v := range acc {
				VMULPS(own(v), acc[v], acc[v])
			}
			s.savePart(r, acc)
		}}
	}
	dx, scale := YMM(), vectorPair()
	return steps{func() {
		floats(acc)
	}, func() {
		for v := range acc {
			part := YMM()
			VMOVUPS(s.part(r, v), part)
			VFMADD132PS(own(v), part, acc[v])
		}
	}, func() {
		VBROADCASTSS(Mem{Base: at, Disp: scalesX + eight*r}, dx)
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

// dotQ2K emits the product of n rows by a group of Q2_K weights. A weight times its scale fits a byte.
func dotQ2K() {
	blockFunction("Q2_K", "x *int8, d *float32", q2Frame, func(t *blockTile) {
		s := &superTile{blockTile: t, floats: true}
		s.loops(2*wide, q2Step, s.q2KHead, func(at, scales reg.Register) {
			s.block(func(half int) weights {
				u := s.twoBits(half)
				for v := range vectors {
					for j := range u {
						VPMULLW(Mem{Base: scales, Disp: q2Pairs + wide*half + 32*v}, u[j][v], u[j][v])
					}
				}
				return u
			}, beginAnchor, func(r int, acc pair) steps {
				return s.q2KEnd(r, acc, at, scales, func() { floats(acc) })
			})
		})
	})
}

// The frame of a tile of IQ4_XS.
const (
	dotXSBegin = superTop                     // [row][8] what sums begin at
	dotXS      = dotXSBegin + blockRows*eight // the frame of the tile of AVX2
	dotXSFrame = dotXS + xsFrame
)

// dotIQ4XS emits the product of n rows by a group of IQ4_XS weights, as [iq4XSTile] does.
func dotIQ4XS() {
	blockFunction("IQ4_XS", "x *int8, d *float32, sum *int32", dotXSFrame, func(t *blockTile) {
		s, sum := &superTile{blockTile: t}, Load(Param("sum"), GP64())
		s.loops(4*wide, wide, func() reg.Register {
			s.eachRow(sum, func(r int, p Mem) {
				y, begin := YMM(), YMM()
				VMOVDQU(p, y)
				VPSLLD(U8(7), y, y)
				VMOVDQU(anchors(), begin)
				VPSUBD(y, begin, begin)
				VMOVDQU(begin, s.local(dotXSBegin+eight*r))
			})
			scales := GP64()
			LEAQ(s.local(dotXS), scales)
			xsSuper(s.w, scales)
			ADDQ(U32(xsScales), scales)
			ADDQ(U32(xsHead), s.w)
			return scales
		}, func(at, scales reg.Register) {
			begin := beginAt(func(r int) Mem { return Mem{Base: at, Disp: dotXSBegin + eight*r} })
			s.block(func(half int) weights { return s.iq4(0, half) }, begin, func(r int, acc pair) steps {
				dx, scale := YMM(), vectorPair()
				return steps{func() {
					floats(acc)
				}, func() {
					for v := range acc {
						VMULPS(Mem{Base: scales, Disp: 32 * v}, acc[v], acc[v])
					}
					VBROADCASTSS(Mem{Base: at, Disp: scalesX + eight*r}, dx)
				}, func() {
					for v := range acc {
						VMULPS(s.local(dotXS+xsD+32*v), dx, scale[v])
					}
				}, func() {
					for v := range acc {
						VFMADD213PS(s.chain(r, v), scale[v], acc[v])
						VMOVUPS(acc[v], s.chain(r, v))
					}
				}}
			})
		})
	})
}
