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
	floats bool          // the frame holds the scales of sub-blocks as floats, not twice in 16 bits
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

// A nibbleSuper is a type like Q4_K: its nibbles, perhaps with fifth bits.
type nibbleSuper struct {
	name    string
	bits    int // bytes of a sub-block of 16 outputs
	weights func(t *blockTile, disp, half int) weights
	wide    bool // the sums of a sub-block do not fit 16 bits, those of a half do
}

var (
	typeQ4K = nibbleSuper{name: "Q4_K", bits: 4 * wide, weights: (*blockTile).nibbles}
	typeQ5K = nibbleSuper{name: "Q5_K", bits: 5 * wide, weights: (*blockTile).fiveBits, wide: true}
)

// nibbleSuperTile emits the product of n rows by a group of Q4_K or Q5_K weights.
//
// The product of a minimum and a sum of activations is an exact float. Where it is zero its sign may differ
// from that of the integer product, which changes nothing: no chain is ever -0.
func nibbleSuperTile(k nibbleSuper) {
	blockFunction(k.name, "x *int8, d *float32, sum *int32", q4Frame, func(t *blockTile) {
		s, sum := &superTile{blockTile: t}, Load(Param("sum"), GP64())
		s.loops(k.bits, q4Step, func() reg.Register {
			s.halves(2, q4D)
			return s.q4KHead(sum)
		}, func(at, scales reg.Register) {
			s.half(k.weights(t, 0, 0), 0, nil, func(r int, acc pair) steps {
				if k.wide {
					scaled(acc, scales)
				}
				return s.savePart(r, acc)
			})
			s.half(k.weights(t, 0, 1), 1, nil, func(r int, acc pair) steps { return s.q4KRow(k, r, acc, at, scales) })
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

// scaled emits the sums of pairs of 16 bits, times the scales of their outputs.
func scaled(acc pair, scales reg.Register) {
	for v := range acc {
		VPMADDWD(Mem{Base: scales, Disp: q4Pairs + 32*v}, acc[v], acc[v])
	}
}

// q4KRow finishes the sums acc of row r over a sub-block.
func (s *superTile) q4KRow(k nibbleSuper, r int, acc pair, at, scales reg.Register) steps {
	return s.q4KEnd(r, acc, at, scales, func() {
		if k.wide {
			scaled(acc, scales)
			for v := range acc {
				VPADDD(s.part(r, v), acc[v], acc[v])
			}
			return
		}
		for v := range acc {
			VPADDW(s.part(r, v), acc[v], acc[v])
		}
		scaled(acc, scales)
	}, func(v int) { VCVTDQ2PS(acc[v], acc[v]) })
}

// q4KEnd emits the end of row r over a sub-block: first and then float make floats of the sums, times the scales.
func (s *superTile) q4KEnd(r int, acc pair, at, scales reg.Register, first func(), float func(v int)) steps {
	dx, sum := YMM(), YMM()
	minimum := func(v int) {
		low, scale := YMM(), YMM()
		VMULPS(Mem{Base: scales, Disp: q4Minima + 32*v}, sum, low)
		VMULPS(s.local(q4D+wide+32*v), dx, scale)
		VFNMADD231PS(scale, low, acc[v])
		VMOVUPS(acc[v], s.chain(r, v))
	}
	return steps{first, func() {
		VBROADCASTSS(Mem{Base: at, Disp: scalesX + eight*r}, dx)
		for v := range acc {
			scale := YMM()
			float(v)
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
		if s.floats {
			s.minima(low, to+q4Pairs)
			s.minima(high, to+q4Pairs+4*q4Step)
		} else {
			s.pairs(low, to+q4Pairs, q4Step, false)
			s.pairs(high, to+q4Pairs+4*q4Step, q4Step, false)
		}
		VPSRLW(U8(4), coded[2], coded[2])
		low, high = four(1)
		s.minima(low, to+q4Minima)
		s.minima(high, to+q4Minima+4*q4Step)
	}
}

// minima emits the minima of four sub-blocks, one in each byte of a lane, to the frame as floats.
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
