// Command vector generates the AVX2 kernels of vector.go, clamped.go and quantize.go.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

func main() {
	ConstraintExpr("amd64,!purego")
	sum()
	sumSquares()
	elementwise()
	gated("siluMulAVX2", func(g reg.VecVirtual) reg.VecVirtual {
		v := YMM()
		VXORPS(Bits(1<<31), g, v)
		return v
	})
	clampedSwiGLU()
	gated("geluMulAVX2", geluArg)
	gelu()
	gated("geluErfMulAVX2", erfArg)
	geluErf()
	silu()
	sigmoid()
	softplus()
	softcap()
	ropeNeox()
	ropePairs()
	maxAbsBits()
	quantize()
	Generate()
}

func sum() {
	Func("sumAVX2", "func(x []float32, tail *[32]float32) float32",
		"sumAVX2 is sumGo. The whole blocks of 32 come from x, the rest, with zeros behind it, from tail.")
	acc := Accumulators(Float(0))
	Blocks(func(at [4]Mem) {
		for i, m := range at {
			VADDPS(m, acc[i], acc[i])
		}
	})
	Result(Fold(acc, Add), 0)
	End()
}

func sumSquares() {
	Func("sumSquaresAVX2", "func(x []float32, tail *[32]float32) float32",
		"sumSquaresAVX2 is sumSquaresGo. The whole blocks of 32 come from x, the rest, with zeros behind",
		"it, from tail.")
	acc := Accumulators(Float(0))
	Blocks(func(at [4]Mem) {
		for i, m := range at {
			v := YMM()
			VMOVUPS(m, v)
			VFMADD231PS(v, v, acc[i])
		}
	})
	Result(Fold(acc, Add), 0)
	End()
}

// elementwise emits the functions that take a few instructions an element. All take the elements up
// to the last multiple of 8 of x.
func elementwise() {
	Func("mulTwiceAVX2", "func(dst, x []float32, a float32, w []float32)", "mulTwiceAVX2 is mulTwiceGo.")
	dst, x, w, a := Base("dst"), Base("x"), Base("w"), Broadcast("a")
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VMULPS(At(x, i), a, v)
		VMULPS(At(w, i), v, v)
		VMOVUPS(v, At(dst, i))
	})
	End()

	Func("shiftAVX2", "func(dst, x []float32, a float32)", "shiftAVX2 is shiftGo.")
	dst, x, a = Base("dst"), Base("x"), Broadcast("a")
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VADDPS(At(x, i), a, v)
		VMOVUPS(v, At(dst, i))
	})
	End()

	Func("addAVX2", "func(dst, x []float32)", "addAVX2 is addGo.")
	dst, x = Base("dst"), Base("x")
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VMOVUPS(At(dst, i), v)
		VADDPS(At(x, i), v, v)
		VMOVUPS(v, At(dst, i))
	})
	End()

	Func("scaleAVX2", "func(dst, x []float32, a float32)", "scaleAVX2 is scaleGo.")
	dst, x, a = Base("dst"), Base("x"), Broadcast("a")
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VMULPS(At(x, i), a, v)
		VMOVUPS(v, At(dst, i))
	})
	End()

	Func("addScaledAVX2", "func(dst []float32, a float32, x []float32)", "addScaledAVX2 is addScaledGo.")
	dst, x, a = Base("dst"), Base("x"), Broadcast("a")
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VMOVUPS(At(dst, i), v)
		VFMADD231PS(At(x, i), a, v)
		VMOVUPS(v, At(dst, i))
	})
	End()
}

// gated emits (g / (1 + Exp32(v))) * u, where v is a function of g.
func gated(name string, arg func(g reg.VecVirtual) reg.VecVirtual) {
	Func(name, "func(dst, gate, up []float32)", name+" is its portable twin, for the elements up to the",
		"last multiple of 8 of gate.")
	dst, gate, up := Base("dst"), Base("gate"), Base("up")
	Each("gate", func(i reg.GPVirtual) {
		g := YMM()
		VMOVUPS(At(gate, i), g)
		e := arg(g)
		Exp(Vecs{e}, false)
		VADDPS(Float(1), e, e)
		VDIVPS(e, g, g)
		VMULPS(At(up, i), g, g)
		VMOVUPS(g, At(dst, i))
	})
	End()
}

// clampedSwiGLU emits the gate of gpt-oss. The operand that may be NaN stands first, so that it passes.
func clampedSwiGLU() {
	Func("clampedSwiGLUAVX2", "func(dst, gate, up []float32)", "clampedSwiGLUAVX2 is clampedSwiGLUGo, for the elements up to",
		"the last multiple of 8 of gate.")
	dst, gate, up := Base("dst"), Base("gate"), Base("up")
	top, bottom := YMM(), YMM()
	VMOVUPS(Float(7), top)
	VMOVUPS(Float(-7), bottom)
	Each("gate", func(i reg.GPVirtual) {
		g, u, e := YMM(), YMM(), YMM()
		VMOVUPS(At(gate, i), g)
		VMOVUPS(At(up, i), u)
		VMINPS(g, top, g)
		VMINPS(u, top, u)
		VMAXPS(u, bottom, u)
		VMULPS(Float(-1.702), g, e)
		Exp(Vecs{e}, false)
		VADDPS(Float(1), e, e)
		VDIVPS(e, g, g)
		VADDPS(Float(1), u, u)
		VMULPS(u, g, g)
		VMOVUPS(g, At(dst, i))
	})
	End()
}

// geluArg returns -2z of GeluMul.
func geluArg(g reg.VecVirtual) reg.VecVirtual {
	v, k := YMM(), YMM()
	VMULPS(g, g, v)
	VMOVUPS(Float(-0x1.2444f2p-4), k)
	VFMADD213PS(Float(-0x1.988454p+0), k, v)
	VMULPS(v, g, v)
	return v
}

func gelu() {
	Func("geluAVX2", "func(dst, x []float32)", "geluAVX2 is geluGo, for the elements up to the last multiple of 8 of x.")
	normal(geluArg)
}

// erfPoly is its twin.
var erfPoly = []float64{
	0x1.1c7636p-10, -0x1.6d5d7cp-10, -0x1.3233c4p-9, 0x1.3026ccp-8, -0x1.5f6848p-9,
	0x1.5ff95ep-9, -0x1.f2a0b4p-9, 0x1.58ec38p-14, 0x1.7f2bdp-7, -0x1.5387b8p-5,
	0x1.189336p-3, -0x1.a2be82p-1, -0x1.4b85b2p+1,
}

// erfArg is its twin. VMINPS gives its second operand where the square is NaN; the product with g is then NaN.
func erfArg(g reg.VecVirtual) reg.VecVirtual {
	u, p, k := YMM(), YMM(), YMM()
	VMULPS(g, g, u)
	VMINPS(Float(32), u, u)
	VMOVUPS(Float(1.0/16), k)
	VFMADD213PS(Float(-1), k, u)
	VMOVUPS(Float(erfPoly[0]), p)
	for _, c := range erfPoly[1:] {
		VFMADD213PS(Float(c), u, p)
	}
	VMULPS(p, g, p)
	return p
}

func geluErf() {
	Func("geluErfAVX2", "func(dst, x []float32)", "geluErfAVX2 is geluErfGo, for the elements up to the last multiple of 8 of x.")
	normal(erfArg)
}

// normal emits a loop that divides x by 1 + Exp32(v), where v is a function of x.
func normal(arg func(g reg.VecVirtual) reg.VecVirtual) {
	dst, x := Base("dst"), Base("x")
	Each("x", func(i reg.GPVirtual) {
		g := YMM()
		VMOVUPS(At(x, i), g)
		e := arg(g)
		Exp(Vecs{e}, false)
		VADDPS(Float(1), e, e)
		VDIVPS(e, g, g)
		VMOVUPS(g, At(dst, i))
	})
	End()
}

func silu() {
	Func("siluAVX2", "func(dst, x []float32)", "siluAVX2 is siluGo, for the elements up to the last multiple of 8 of x.")
	logistic(func(g reg.VecVirtual) reg.VecVirtual { return g })
}

func sigmoid() {
	Func("sigmoidAVX2", "func(dst, x []float32)", "sigmoidAVX2 is sigmoidGo, for the elements up to the last multiple of 8 of x.")
	logistic(func(g reg.VecVirtual) reg.VecVirtual {
		one := YMM()
		VMOVUPS(Float(1), one)
		return one
	})
}

// logistic emits a loop that divides what dividend returns by 1 + Exp32(-x).
func logistic(dividend func(g reg.VecVirtual) reg.VecVirtual) {
	dst, x := Base("dst"), Base("x")
	Each("x", func(i reg.GPVirtual) {
		g, e := YMM(), YMM()
		VMOVUPS(At(x, i), g)
		VXORPS(Bits(1<<31), g, e)
		Exp(Vecs{e}, false)
		VADDPS(Float(1), e, e)
		VDIVPS(e, dividend(g), g)
		VMOVUPS(g, At(dst, i))
	})
	End()
}

func softplus() {
	Func("softplusAVX2", "func(dst, x []float32)", "softplusAVX2 is softplusGo, for the elements up to the last multiple of 8 of x.")
	dst, x := Base("dst"), Base("x")
	Each("x", func(i reg.GPVirtual) {
		v, a, s, zero := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(At(x, i), v)
		VORPS(Bits(1<<31), v, a)
		Exp(Vecs{a}, true)
		VADDPS(Float(1), a, s)
		k, f := LogParts(s)
		VXORPS(zero, zero, zero)
		VCMPPS(Equal, zero, k, s)
		VBLENDVPS(s, a, f, f)
		l := Log1p(k, f)
		VMAXPS(v, zero, v) // v where it is NaN
		VADDPS(l, v, v)
		VMOVUPS(v, At(dst, i))
	})
	End()
}

func softcap() {
	Func("softcapAVX2", "func(x []float32, limit float32)",
		"softcapAVX2 is softcapGo, for the elements up to the last multiple of 8 of x.")
	x, limit := Base("x"), Broadcast("limit")
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VMOVUPS(At(x, i), v)
		VDIVPS(limit, v, v)
		t := Tanh(Vecs{v})[0]
		VMULPS(t, limit, t)
		VMOVUPS(t, At(x, i))
	})
	End()
}

// rotation emits the loops of both kinds of rotation: over steps of the given number of pairs, and
// within over heads. The body gets the place of the step in a head.
func rotation(step int, load func(cos, sin reg.Register), body func(x reg.Register)) {
	first, size, cos, sin, pairs := Int("x"), Int("size"), Int("cos"), Int("sin"), Int("pairs")
	SHLQ(U8(2), size)
	x, h := GP64(), GP64()
	Label("pairs")
	load(cos, sin)
	MOVQ(first, x)
	Load(Param("heads"), h)
	Label("heads")
	body(x)
	ADDQ(size, x)
	DECQ(h)
	JNZ(LabelRef("heads"))
	ADDQ(U8(4*step), cos)
	ADDQ(U8(4*step), sin)
	ADDQ(U8(32), first)
	SUBQ(U8(step), pairs)
	JNZ(LabelRef("pairs"))
	End()
}

func ropeNeox() {
	Func("ropeNeoxAVX2", "func(x *float32, heads, size, half, pairs int, cos, sin *float32)",
		"ropeNeoxAVX2 rotates the pairs (i, i+half) of each head, i < pairs. pairs is a positive multiple",
		"of 8, heads is positive.")
	half := Int("half")
	c, s := YMM(), YMM()
	rotation(8, func(cos, sin reg.Register) {
		VMOVUPS(Mem{Base: cos}, c)
		VMOVUPS(Mem{Base: sin}, s)
	}, func(x reg.Register) {
		second := Mem{Base: x, Index: half, Scale: 4}
		x0, x1, y0, y1 := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(Mem{Base: x}, x0)
		VMOVUPS(second, x1)
		VMULPS(s, x1, y0)
		VMULPS(c, x1, y1)
		VFMSUB231PS(c, x0, y0)
		VFMADD231PS(s, x0, y1)
		VMOVUPS(y0, Mem{Base: x})
		VMOVUPS(y1, second)
	})
}

func ropePairs() {
	Func("ropePairsAVX2", "func(x *float32, heads, size, pairs int, cos, sin *float32)",
		"ropePairsAVX2 rotates the pairs (2i, 2i+1) of each head, i < pairs. pairs is a positive multiple",
		"of 4, heads is positive.")
	cs, sc := YMM(), YMM() // cosines in even lanes and sines in odd ones, and the reverse
	rotation(4, func(cos, sin reg.Register) {
		c, s, high := XMM(), XMM(), XMM()
		VMOVUPS(Mem{Base: cos}, c)
		VMOVUPS(Mem{Base: sin}, s)
		VUNPCKHPS(s, c, high)
		VUNPCKLPS(s, c, c)
		VMOVAPS(c, cs.AsX())
		VINSERTF128(U8(1), high, cs, cs)
		VPERMILPS(U8(0xb1), cs, sc)
	}, func(x reg.Register) {
		x0, x1 := YMM(), YMM()
		VMOVSLDUP(Mem{Base: x}, x0)
		VMOVSHDUP(Mem{Base: x}, x1)
		VMULPS(sc, x1, x1)
		VFMADDSUB231PS(cs, x0, x1)
		VMOVUPS(x1, Mem{Base: x})
	})
}

func maxAbsBits() {
	Func("maxAbsBitsAVX2", "func(x []float32) uint32",
		"maxAbsBitsAVX2 is maxAbsBitsGo, for the elements up to the last multiple of 8.")
	x, m, abs := Base("x"), YMM(), YMM()
	VPXOR(m, m, m)
	VMOVUPS(Bits(1<<31-1), abs)
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VPAND(At(x, i), abs, v)
		VPMAXUD(v, m, m)
	})
	Result(FoldVector(m, func(later, p reg.Register) { VPMAXUD(later, p, p) }), 0)
	End()
}
