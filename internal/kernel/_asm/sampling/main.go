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
		for i := 0; i < len(at); i += 2 {
			v := Vecs{YMM(), YMM()}
			v.Each(func(j int) { VMOVUPS(at[i+j], v[j]) })
			v.Each(func(j int) { VSUBPS(m, v[j], v[j]) })
			Exp(v, true)
			v.Each(func(j int) { VADDPS(v[j], acc[i+j], acc[i+j]) })
		}
	})
	Result(Fold(acc, Add), 0)
	End()
}

// The constants of sampling.go.
const (
	noiseSlope = math.Ln2 / (1 << 23)
	noiseLimit = math.Ln2*(127+31) + 1.0/32
)

// A lottery is the state of a draw: the best score so far in all lanes of best, its token, the ids of
// the next eight tokens, and what their scores depend on.
type lottery struct {
	x, i       reg.GPVirtual // the logits, and the byte index of the next eight
	winner     reg.GPVirtual
	best, ids  reg.VecVirtual
	invT, a, b reg.VecVirtual
}

// draw looks at 32 tokens at a time. Where no score can be greater than the best one, by the bound of
// its noise, they go without logarithms: nearly all do.
func draw() {
	Func("drawAVX2", "func(x []float32, invT float32, a, b, first uint32, score *float32, id *uint32)",
		"drawAVX2 is drawGo, for the elements up to the last multiple of 8.")
	l := lottery{x: Base("x"), i: GP64(), winner: GP32(), best: YMM(), ids: broadcastInt("first")}
	l.invT, l.a, l.b = Broadcast("invT"), broadcastInt("a"), broadcastInt("b")
	VBROADCASTSS(Mem{Base: Int("score")}, l.best)
	MOVL(Mem{Base: Int("id")}, l.winner)
	VPADDD(Words("lanes", []uint32{0, 1, 2, 3, 4, 5, 6, 7}), l.ids, l.ids)
	XORQ(l.i, l.i)
	n, blocks := GP64(), GP64()
	Load(Param("x").Len(), n)
	SHRQ(U8(3), n)
	MOVQ(n, blocks)
	SHRQ(U8(2), blocks)
	JZ(LabelRef("rest"))

	Label("block")
	l.rivals()
	n4 := GP64()
	MOVQ(U64(4), n4)
	JNZ(LabelRef("exact")) // MOVQ leaves the flags of rivals
	VPADDD(Bits(32), l.ids, l.ids)
	ADDQ(I32(128), l.i)
	Label("next")
	DECQ(blocks)
	JG(LabelRef("block"))
	JL(LabelRef("done"))

	Label("rest")
	MOVQ(n, n4)
	ANDQ(U8(3), n4)
	JZ(LabelRef("done"))
	Label("exact")
	l.eight()
	VPADDD(Bits(8), l.ids, l.ids)
	ADDQ(U8(32), l.i)
	DECQ(n4)
	JNZ(LabelRef("exact"))
	JMP(LabelRef("next"))

	Label("done")
	VMOVSS(l.best.AsX(), Mem{Base: Int("score")})
	MOVL(l.winner, Mem{Base: Int("id")})
	End()
}

// rivals clears the zero flag where one of the next 32 tokens may have a score above the best.
func (l lottery) rivals() {
	h := Vecs{YMM(), YMM(), YMM(), YMM()}
	bound, slope, mask := h.New(), YMM(), GP32()
	VMOVUPS(Float(noiseSlope), slope)
	h.Each(func(i int) { VPADDD(Bits(uint32(8*i)), l.ids, h[i]) })
	l.hash(h)
	h.Each(func(i int) { VPSRLD(U8(1), h[i], bound[i]) })
	h.Each(func(i int) { VCVTDQ2PS(bound[i], bound[i]) })
	h.Each(func(i int) { VCVTDQ2PS(bound[i], bound[i]) })
	h.Each(func(i int) { VMULPS(Mem{Base: l.x, Index: l.i, Scale: 1, Disp: 32 * i}, l.invT, h[i]) })
	h.Each(func(i int) { VFNMADD213PS(Float(noiseLimit), slope, bound[i]) })
	h.Each(func(i int) { VADDPS(h[i], bound[i], bound[i]) })
	h.Each(func(i int) { VCMPPS(Greater, l.best, bound[i], bound[i]) })
	VORPS(bound[1], bound[0], bound[0])
	VORPS(bound[3], bound[2], bound[2])
	VORPS(bound[2], bound[0], bound[0])
	VMOVMSKPS(bound[0], mask)
	TESTL(mask, mask)
}

// hash turns ids into their hashes.
func (l lottery) hash(h Vecs) {
	h.Each(func(i int) { VPXOR(l.a, h[i], h[i]) })
	mix32(h)
	h.Each(func(i int) { VPADDD(l.b, h[i], h[i]) })
	mix32(h)
}

// eight computes the scores of the next eight tokens and moves best and winner where one is greater.
func (l lottery) eight() {
	h, s, greater, mask := YMM(), YMM(), YMM(), GP32()
	VMOVAPS(l.ids, h)
	l.hash(Vecs{h})
	score := gumbel(h)
	VMULPS(At(l.x, l.i), l.invT, s)
	VADDPS(score, s, score)
	VCMPPS(Greater, l.best, score, greater)
	VMOVMSKPS(greater, mask)
	TESTL(mask, mask)
	JZ(LabelRef("lower"))

	top := YMM()
	VMOVUPS(Float(math.Inf(-1)), top)
	VBLENDVPS(greater, score, top, top)
	VBROADCASTSS(FoldVector(top, Max), l.best)
	VCMPPS(Equal, l.best, score, greater)
	VMOVMSKPS(greater, mask)
	BSFL(mask, mask)
	VMOVD(l.ids.AsX(), l.winner)
	ADDL(mask, l.winner)
	Label("lower")
}

func broadcastInt(param string) reg.VecVirtual {
	r, v := GP32(), YMM()
	Load(Param(param), r)
	VMOVD(r, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

// mix32 is its twin.
func mix32(x Vecs) {
	t := x.New()
	for _, round := range []struct {
		shift uint8
		odd   uint32
	}{{16, 0x7feb352d}, {15, 0x846ca68b}, {16, 0}} {
		x.Each(func(i int) { VPSRLD(U8(round.shift), x[i], t[i]) })
		x.Each(func(i int) { VPXOR(t[i], x[i], x[i]) })
		if round.odd != 0 {
			x.Each(func(i int) { VPMULLD(Bits(round.odd), x[i], x[i]) })
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
