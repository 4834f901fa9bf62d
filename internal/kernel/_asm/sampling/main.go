// Command sampling generates the AVX2 kernels of sampling.go.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

func main() {
	ConstraintExpr("amd64,!purego")
	maxOf()
	sumExp()
	draw()
	Generate()
}

func maxOf() {
	Func("maxOfAVX2", "func(x []float32, tail *[32]float32) float32",
		"maxOfAVX2 is maxOfGo. The whole blocks of 32 come from x, the rest, with -Inf behind it, from tail.")
	acc := Accumulators(Float(math.Inf(-1)))
	Blocks(func(at [4]Mem) {
		for i, m := range at {
			v := YMM()
			VMOVUPS(m, v)
			Max(v, acc[i])
		}
	})
	Result(Fold(acc, Max), 0)
	End()
}

func sumExp() {
	Func("sumExpAVX2", "func(x []float32, tail *[32]float32, m float32) float32",
		"sumExpAVX2 is sumExpGo, for values that are not above m, or NaN. The whole blocks of 32 come from x,",
		"the rest, with -Inf behind it, from tail.")
	m := Broadcast("m")
	acc := Accumulators(Float(0))
	Blocks(func(at [4]Mem) {
		for i, from := range at {
			v := YMM()
			VMOVUPS(from, v)
			VSUBPS(m, v, v)
			VADDPS(ExpNegative(v), acc[i], acc[i])
		}
	})
	Result(Fold(acc, Add), 0)
	End()
}

// No noise is greater than noiseLimit - noiseSlope * bits, where bits are those of the float32 nearest
// to h/2, as an integer. For -log(-log(1-W)) < -log(W) <= -log(w), w = floor(h/2) 2**-31, and the bits
// of a float, taken as a fixed-point number, are at most its logarithm to the base 2, plus the
// exponent's bias. The last term of the limit outweighs all roundings.
const (
	noiseSlope = math.Ln2 / (1 << 23)
	noiseLimit = math.Ln2*(127+31) + 1.0/32
)

// draw keeps the best score so far in all lanes of best. Eight tokens whose scores cannot be greater,
// by the bound of their noise, go without logarithms: nearly all of them do.
func draw() {
	Func("drawAVX2", "func(x []float32, invT float32, a, b, first uint32, score *float32, id *uint32)",
		"drawAVX2 is drawGo, for the elements up to the last multiple of 8.")
	x, invT := Base("x"), Broadcast("invT")
	best := YMM()
	VBROADCASTSS(Mem{Base: Int("score")}, best)
	winner := GP32()
	MOVL(Mem{Base: Int("id")}, winner)
	ids := broadcastInt("first")
	VPADDD(Words("lanes", [8]uint32{0, 1, 2, 3, 4, 5, 6, 7}), ids, ids)
	a, b := broadcastInt("a"), broadcastInt("b")
	Each("x", func(i reg.GPVirtual) {
		h, s, bound, candidates := YMM(), YMM(), YMM(), GP32()
		VPXOR(a, ids, h)
		mix32(h)
		VPADDD(b, h, h)
		mix32(h)
		VPADDD(Bits(8), ids, ids)

		VMULPS(At(x, i), invT, s)
		slope := YMM()
		VMOVUPS(Float(noiseSlope), slope)
		VPSRLD(U8(1), h, bound)
		VCVTDQ2PS(bound, bound)
		VCVTDQ2PS(bound, bound)
		VFNMADD213PS(Float(noiseLimit), slope, bound)
		VADDPS(s, bound, bound)
		VCMPPS(Greater, best, bound, bound)
		VMOVMSKPS(bound, candidates)
		TESTL(candidates, candidates)
		JZ(LabelRef("next"))
		improve(h, s, best, i, winner)
		Label("next")
	})
	VMOVSS(best.AsX(), Mem{Base: Int("score")})
	MOVL(winner, Mem{Base: Int("id")})
	End()
}

// improve computes the scores and moves best and winner where a score is greater.
func improve(h, s, best reg.VecVirtual, i, winner reg.GPVirtual) {
	score := gumbel(h)
	VADDPS(score, s, score)
	greater, mask := YMM(), GP32()
	VCMPPS(Greater, best, score, greater)
	VMOVMSKPS(greater, mask)
	TESTL(mask, mask)
	JZ(LabelRef("next"))

	top := YMM()
	VMOVUPS(Float(math.Inf(-1)), top)
	VBLENDVPS(greater, score, top, top)
	VBROADCASTSS(FoldVector(top, Max), best)
	VCMPPS(Equal, best, score, greater)
	VMOVMSKPS(greater, mask)
	BSFL(mask, mask)
	at := GP64()
	MOVQ(i, at)
	SHRQ(U8(2), at)
	ADDL(at.As32(), mask)
	first := GP32()
	Load(Param("first"), first)
	ADDL(first, mask)
	MOVL(mask, winner)
}

func broadcastInt(param string) reg.VecVirtual {
	r, v := GP32(), YMM()
	Load(Param(param), r)
	VMOVD(r, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

// mix32 is its twin.
func mix32(x reg.VecVirtual) {
	t := YMM()
	for _, round := range []struct {
		shift uint8
		odd   uint32
	}{{16, 0x7feb352d}, {15, 0x846ca68b}, {16, 0}} {
		VPSRLD(U8(round.shift), x, t)
		VPXOR(t, x, x)
		if round.odd != 0 {
			VPMULLD(Bits(round.odd), x, x)
		}
	}
}

// gumbel is its twin.
func gumbel(h reg.VecVirtual) reg.VecVirtual {
	w, inverse, whole := unit(h), YMM(), YMM()
	VPXOR(Bits(1<<32-1), h, inverse)
	e, f := LogParts(unit(inverse))
	Negate(w)
	VCMPPS(Equal, Float(0), e, whole)
	VBLENDVPS(whole, w, f, f)
	g := Log1p(e, f)
	Negate(g)
	g = Log1p(LogParts(g))
	Negate(g)
	return g
}

// unit is its twin.
func unit(h reg.VecVirtual) reg.VecVirtual {
	low, high, weight := YMM(), YMM(), YMM()
	VPAND(Bits(0xffff), h, low)
	VCVTDQ2PS(low, low)
	VADDPS(Float(0.5), low, low)
	VMULPS(Float(0x1p-32), low, low)
	VPSRLD(U8(16), h, high)
	VCVTDQ2PS(high, high)
	VMOVUPS(Float(0x1p-16), weight)
	VFMADD213PS(low, weight, high)
	return high
}
