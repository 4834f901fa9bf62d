package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

const infinity = 0x7f800000

// quantize emits the quantisation of blocks of 32 floats.
func quantize() {
	Func("quantizeAVX2", "func(q *int8, d *float32, sum *int32, x *float32, nb int)",
		"quantizeAVX2 quantises nb > 0 blocks of 32 values as [Rows.Quantize] says.")
	q, d := Load(Param("q"), GP64()), Load(Param("d"), GP64())
	sum, x := Load(Param("sum"), GP64()), Load(Param("x"), GP64())
	nb := Load(Param("nb"), GP64())
	magnitude, order := YMM(), YMM()
	VPCMPEQD(magnitude, magnitude, magnitude)
	VPSRLD(U8(1), magnitude, magnitude)
	VMOVDQU(Words("order", []uint32{0, 4, 1, 5, 2, 6, 3, 7}), order)
	c127, inf := XMM(), XMM()
	VMOVSS(Words("c127", []uint32{0x42fe0000}), c127)
	VMOVSS(Words("inf", []uint32{infinity}), inf)

	Label("loop")
	var v [4]reg.VecVirtual
	for i := range v {
		v[i] = YMM()
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v[i])
	}
	amax, bits := largest(v, magnitude), GP32()
	VMOVD(amax, bits)
	CMPL(bits, U32(infinity))
	JAE(LabelRef("nonfinite"))

	scale, id, finite := XMM(), XMM(), XMM()
	VDIVSS(c127, amax, scale)
	VMOVSS(scale, Mem{Base: d})
	VDIVSS(amax, c127, id)
	VCMPSS(U8(1), inf, id, finite) // less than
	VANDPS(finite, id, id)
	wide := YMM()
	VBROADCASTSS(id, wide)
	for i := range v {
		VMULPS(wide, v[i], v[i])
		VCVTPS2DQ(v[i], v[i])
	}
	storeSum(v, sum)
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	VPERMD(v[0], order, v[0])
	VMOVDQU(v[0], Mem{Base: q})

	Label("next")
	ADDQ(Imm(128), x)
	ADDQ(Imm(32), q)
	ADDQ(Imm(4), d)
	ADDQ(Imm(4), sum)
	DECQ(nb)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()

	Label("nonfinite")
	zero := YMM()
	VPXOR(zero, zero, zero)
	VMOVDQU(zero, Mem{Base: q})
	MOVL(U32(0), Mem{Base: sum})
	MOVL(U32(0x7fc00000), Mem{Base: d})
	JMP(LabelRef("next"))
}

// largest emits the largest magnitude of v, compared as integers, into the low lane of the result.
func largest(v [4]reg.VecVirtual, magnitude reg.VecVirtual) reg.VecVirtual {
	var a [4]reg.VecVirtual
	for i := range a {
		a[i] = YMM()
		VPAND(v[i], magnitude, a[i])
	}
	VPMAXSD(a[1], a[0], a[0])
	VPMAXSD(a[3], a[2], a[2])
	VPMAXSD(a[2], a[0], a[0])
	low := a[0].AsX().(reg.VecVirtual)
	high := XMM()
	VEXTRACTI128(U8(1), a[0], high)
	for _, shuffle := range []uint64{0x4e, 0xb1, 0} {
		VPMAXSD(high, low, low)
		if shuffle != 0 {
			VPSHUFD(U8(shuffle), low, high)
		}
	}
	return low
}

// storeSum emits the sum of all lanes of v to the place that sum points at.
func storeSum(v [4]reg.VecVirtual, sum reg.Register) {
	s, t := YMM(), YMM()
	VPADDD(v[0], v[1], s)
	VPADDD(v[2], v[3], t)
	VPADDD(t, s, s)
	low, high := s.AsX(), XMM()
	VEXTRACTI128(U8(1), s, high)
	VPADDD(high, low, low)
	for _, shuffle := range []uint64{0x4e, 0xb1} {
		VPSHUFD(U8(shuffle), low, high)
		VPADDD(high, low, low)
	}
	VMOVD(low, Mem{Base: sum})
}
