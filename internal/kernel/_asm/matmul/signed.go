package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The tiles of types whose weights are signed bytes, or become such by a codebook, keep the sums of a block in
// registers while the weights pass. A weight's sign moves to the activation, so that the unsigned by signed
// multiply-add of bytes applies: its sums of two products stay within 2*128*127, short of saturation.

// A signedType is such a type of blocks of 32 inputs.
type signedType struct {
	name string
	bits int // bytes of the inputs of 16 outputs
	load func(n int) signedLoad
}

// signedLoad emits the weights of a quad by vector v, where the bits of a block lie disp bytes behind w, and their
// magnitudes.
type signedLoad func(w reg.Register, disp, quad, v int) (weight, magnitude reg.VecVirtual)

var (
	typeQ8_0  = signedType{name: "Q8_0", bits: 8 * wide, load: func(int) signedLoad { return loadInt8 }}
	typeIQ4NL = signedType{name: "IQ4_NL", bits: 4 * wide, load: loadIQ4}
)

const scaleBytes = 2 * 8 * vectors // half floats at the start of a packed block

// signedTile emits the product of n rows by a group of weights of a type.
func signedTile(k signedType) {
	fn := "tile" + k.name + "AVX2"
	function(fn, "func(dst *float32, stride int, w *byte, nb int, x *int8, d *float32, n int)",
		fn+" writes the products of n rows (1 to 6) of nb > 0 blocks by a packed group of "+k.name,
		"weights to 16 elements of each of n rows of dst, stride elements apart.")
	perRows(maxRows, func(n int) {
		w, nb := Load(Param("w"), GP64()), Load(Param("nb"), GP64())
		x := rows("x", strideOf("nb", 5), n)
		d := rows("d", strideOf("nb", 2), n)
		dst := rows("dst", strideOf("stride", 2), n)
		clearRows(dst, n)
		ones, load := wordOnes(), k.load(n)
		loop := fmt.Sprintf("loop%d", n)
		Label(loop)
		isum := accumulators(n)
		signedSums(w, scaleBytes, load, x, isum, ones, func(quad int) {
			for i := quad * k.bits / 512; i < (quad+1)*k.bits/512; i++ {
				PREFETCHT0(Mem{Base: w, Disp: 64 * (ahead + i)})
			}
		})
		signedScale(w, d, dst, isum)
		ADDQ(U32(scaleBytes+k.bits), w)
		x.advance(32)
		d.advance(4)
		DECQ(nb)
		JNZ(LabelRef(loop))
	})
}

// clearRows emits zeros to the outputs of n rows.
func clearRows(dst matrix, n int) {
	zero := YMM()
	VXORPS(zero, zero, zero)
	for r := range n {
		for v := range vectors {
			VMOVUPS(zero, dst.at(r, 32*v))
		}
	}
}

// wordOnes emits ones in 16 bits.
func wordOnes() reg.VecVirtual {
	ones := YMM()
	VPCMPEQW(ones, ones, ones)
	VPSRLW(U8(15), ones, ones)
	return ones
}

// sharedRows are the rows of the largest tile that leaves registers for more than the weights of one vector.
const sharedRows = 4

// signedSums emits isum = the integer sums of a block; before emits what precedes each quad. In tiles of up to
// sharedRows both vectors share a quad of activations.
func signedSums(w reg.Register, disp int, load signedLoad, x matrix, isum [][vectors]reg.VecVirtual, ones reg.VecVirtual, before func(quad int)) {
	for quad := range 8 {
		before(quad)
		if len(isum) > sharedRows {
			for v := range vectors {
				wv, abs := load(w, disp, quad, v)
				for r := range isum {
					p := YMM()
					VPBROADCASTD(x.at(r, 4*quad), p)
					signedAdd(isum[r][v], p, p, wv, abs, ones, quad == 0)
				}
			}
			continue
		}
		var wv, abs pair
		for v := range vectors {
			wv[v], abs[v] = load(w, disp, quad, v)
		}
		for r := range isum {
			p := vectorPair()
			VPBROADCASTD(x.at(r, 4*quad), p[1])
			for v := range vectors {
				signedAdd(isum[r][v], p[1], p[v], wv[v], abs[v], ones, quad == 0)
			}
		}
	}
}

// signedAdd emits the products of a quad of activations x by signed weights in p, and adds them to sum.
func signedAdd(sum, x, p, wv, abs, ones reg.VecVirtual, first bool) {
	VPSIGNB(wv, x, p)
	VPMADDUBSW(p, abs, p)
	if first {
		VPMADDWD(ones, p, sum)
		return
	}
	VPMADDWD(ones, p, p)
	VPADDD(p, sum, sum)
}

// signedScale emits dst = isum * (dw * dx) + dst for a block.
func signedScale(w reg.Register, d, dst matrix, isum [][vectors]reg.VecVirtual) {
	for v := range vectors {
		dw := YMM()
		VCVTPH2PS(Mem{Base: w, Disp: 16 * v}, dw)
		for r := range isum {
			scale, acc := YMM(), isum[r][v]
			VBROADCASTSS(d.at(r, 0), scale)
			VMULPS(dw, scale, scale)
			VCVTDQ2PS(acc, acc)
			VFMADD213PS(dst.at(r, 32*v), scale, acc)
			VMOVUPS(acc, dst.at(r, 32*v))
		}
	}
}

func loadInt8(w reg.Register, disp, quad, v int) (weight, magnitude reg.VecVirtual) {
	weight, magnitude = YMM(), YMM()
	VMOVDQU(Mem{Base: w, Disp: disp + 32*(vectors*quad+v)}, weight)
	VPABSB(weight, magnitude)
	return weight, magnitude
}

// iq4Values are the weights of IQ4_NL and IQ4_XS by their nibbles.
var iq4Values = [16]int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// loadIQ4 reads nibbles by quads and looks them up. In tiles of more than sharedRows no register is left for the codebook.
func loadIQ4(n int) signedLoad {
	values := codebook("iq4", iq4Values, 0)
	codes := YMM()
	if n <= sharedRows {
		VMOVDQU(values, codes)
	}
	return func(w reg.Register, disp, quad, v int) (weight, magnitude reg.VecVirtual) {
		weight, magnitude = YMM(), YMM()
		VMOVDQU(Mem{Base: w, Disp: disp + wide*(quad%4) + 32*v}, magnitude)
		if quad >= 4 {
			VPSRLW(U8(4), magnitude, magnitude)
		}
		VPAND(everywhere(0x0f), magnitude, magnitude)
		if n > sharedRows {
			VMOVDQU(values, weight)
			VPSHUFB(magnitude, weight, weight)
		} else {
			VPSHUFB(magnitude, codes, weight)
		}
		VPABSB(weight, magnitude)
		return weight, magnitude
	}
}

// The frame of a tile of IQ4_XS.
const (
	xsD      = 0          // [16] d
	xsScales = xsD + wide // [8 sub-blocks][16] scales as floats
	xsFrame  = xsScales + 8*wide

	xsHead = 2*scaleBytes + wide // bytes of a packed super-block before its nibbles
)

// iq4XSTile emits the product of n rows by a group of IQ4_XS weights. The integer sum of a sub-block times its scale is
// an exact float, but for the sign of a zero, which changes nothing: no chain is ever -0.
func iq4XSTile() {
	TEXT("tileIQ4_XSAVX2", 0, "func(dst *float32, stride int, w *byte, nb int, x *int8, d *float32, n int)")
	Pragma("noescape")
	Doc("tileIQ4_XSAVX2 writes the products of n rows (1 to 6) of nb > 0 blocks by a packed group of IQ4_XS",
		"weights to 16 elements of each of n rows of dst, stride elements apart.")
	room := AllocLocal(xsFrame + 24)
	perRows(maxRows, func(n int) {
		w, nb, frame := Load(Param("w"), GP64()), Load(Param("nb"), GP64()), GP64()
		LEAQ(room.Offset(24), frame)
		ANDQ(I8(-32), frame)
		x := rows("x", strideOf("nb", 8), n)
		d := rows("d", strideOf("nb", 5), n)
		dst := rows("dst", strideOf("stride", 2), n)
		clearRows(dst, n)
		ones, load := wordOnes(), loadIQ4(n)
		loop, inner := fmt.Sprintf("loop%d", n), fmt.Sprintf("sub%d", n)
		Label(loop)
		xsSuper(w, frame)
		ADDQ(U32(xsHead), w)
		at := GP64()
		LEAQ(Mem{Base: frame, Disp: xsScales}, at)
		Label(inner)
		isum := accumulators(n)
		signedSums(w, 0, load, x, isum, ones, func(quad int) {
			if quad%2 == 0 {
				PREFETCHT0(Mem{Base: w, Disp: 64 * (ahead + quad/2)})
			}
		})
		xsScale(frame, at, d, dst, isum)
		ADDQ(U32(4*wide), w)
		ADDQ(U8(wide), at)
		x.advance(32)
		d.advance(4)
		left := GP64()
		LEAQ(Mem{Base: frame, Disp: xsFrame}, left)
		CMPQ(at, left)
		JB(LabelRef(inner))
		DECQ(nb)
		JNZ(LabelRef(loop))
	})
}

// xsSuper emits the scales of a super-block to the frame: of each output a half, 8 times the high 2 bits in 16,
// 8 times the low 4 bits in 32.
func xsSuper(w, frame reg.Register) {
	for i := range xsHead / 64 {
		PREFETCHT0(Mem{Base: w, Disp: 64 * (ahead + i)})
	}
	for v := range vectors {
		d, high, low := YMM(), YMM(), YMM()
		VCVTPH2PS(Mem{Base: w, Disp: 16 * v}, d)
		VMOVUPS(d, Mem{Base: frame, Disp: xsD + 32*v})
		VPMOVZXWD(Mem{Base: w, Disp: scaleBytes + 16*v}, high)
		VPSLLD(U8(4), high, high)
		VMOVDQU(Mem{Base: w, Disp: 2*scaleBytes + 32*v}, low)
		for s := range 8 {
			scale, top := YMM(), YMM()
			VPSRLD(U8(4*s), low, scale)
			VPAND(vector("low4", func(int) uint32 { return 0x0f }), scale, scale)
			VPSRLD(U8(2*s), high, top)
			VPAND(vector("bits45", func(int) uint32 { return 0x30 }), top, top)
			VPOR(top, scale, scale)
			VPSUBD(vector("less32", func(int) uint32 { return 32 }), scale, scale)
			VCVTDQ2PS(scale, scale)
			VMOVUPS(scale, Mem{Base: frame, Disp: xsScales + wide*s + 32*v})
		}
	}
}

// xsScale emits dst = isum * scale * (d * dx) + dst for a sub-block, whose scales lie at at.
func xsScale(frame, at reg.Register, d, dst matrix, isum [][vectors]reg.VecVirtual) {
	for v := range vectors {
		for r := range isum {
			scale, acc := YMM(), isum[r][v]
			VBROADCASTSS(d.at(r, 0), scale)
			VMULPS(Mem{Base: frame, Disp: xsD + 32*v}, scale, scale)
			VCVTDQ2PS(acc, acc)
			VMULPS(Mem{Base: at, Disp: 32 * v}, acc, acc)
			VFMADD213PS(dst.at(r, 32*v), scale, acc)
			VMOVUPS(acc, dst.at(r, 32*v))
		}
	}
}
