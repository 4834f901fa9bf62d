// Command samplingarm generates the arm64 kernels of sampling.go.
package main

import (
	"math"

	. "grove/internal/kernel/_asm/arm64"
	. "grove/internal/kernel/_asm/neon"
)

func main() {
	maxOf()
	sumExp()
	draw()
	Generate()
}

const negInfBits = 0xff800000

func maxOf() {
	Func("maxOfNEON", "func(x []float32, tail *[32]float32) float32",
		"maxOfNEON is maxOfGo. The whole blocks of 32 come from x, the rest, with -Inf behind it, from tail.")
	acc, v := Accumulators(negInfBits), Vecs(8)
	Blocks(func(x R) {
		Load(v, x, 0)
		for i := range acc {
			Max(v[i], acc[i])
		}
	})
	ResultFloat("ret", Fold(acc, Max))
	Return()
}

func sumExp() {
	Func("sumExpNEON", "func(x []float32, tail *[32]float32, m float32) float32",
		"sumExpNEON is sumExpGo, for values that are not above m, or NaN. The whole blocks of 32 come from x,",
		"the rest, with -Inf behind it, from tail.")
	LoadExp(true)
	m, acc, v := Broadcast("m"), Accumulators(0), Vecs(2)
	Blocks(func(x R) {
		for i := 0; i < len(acc); i += 2 {
			Load(v, x, 16*i)
			for j := range v {
				FSUB(S4, v[j], v[j], m)
			}
			Exp(v, true)
			for j := range v {
				FADD(S4, acc[i+j], acc[i+j], v[j])
			}
		}
	})
	ResultFloat("ret", Fold(acc, Add))
	Return()
}

// The constants of sampling.go.
const (
	noiseSlope = math.Ln2 / (1 << 23)
	noiseLimit = math.Ln2*(127+31) + 1.0/32

	odd1, odd2 = 0x7feb352d, 0x846ca68b
)

// A lottery is the state of a draw: the place of the next logits, the best score so far in all lanes of best, its token, the
// ids of the next four tokens, and what their scores depend on.
type lottery struct {
	x, winner  R
	best, ids  V
	invT, a, b V
}

// draw looks at 16 tokens at a time. Where no score can be greater than the best one, by the bound of its noise, they go
// without logarithms: nearly all do.
func draw() {
	Func("drawNEON", "func(x []float32, invT float32, a, b, first uint32, score *float32, id *uint32)",
		"drawNEON is drawGo, for the elements up to the last multiple of 4.")
	l := start()
	score, id := Arg("score"), Arg("id")
	LD1R(S4, l.best, score)
	Text("MOVWU (%v), %v", id, l.winner)
	n, blocks, left := Arg("x_len"), Reg(), Reg()
	Text("LSR $2, %v", n)
	Text("LSR $2, %v, %v", n, blocks)
	Text("CBZ %v, rest", blocks)

	Label("block")
	Text("MOVD $4, %v", left)
	l.rivals("exact")
	ADD(S4, l.ids, l.ids, Bits(16))
	Advance(64, l.x)
	Label("next")
	Text("SUBS $1, %v, %v", blocks, blocks)
	Text("BGT block")
	Text("BLT done")

	Label("rest")
	Text("ANDS $3, %v, %v", n, left)
	Text("BEQ done")
	Loop("exact", left, func() {
		l.four()
		ADD(S4, l.ids, l.ids, Bits(4))
		Advance(16, l.x)
	})
	Text("B next")

	Label("done")
	STRS(l.best, score, 0)
	Text("MOVW %v, (%v)", l.winner, id)
	Return()
}

// start loads the parameters of a draw and all constants.
func start() lottery {
	LoadLog()
	for _, b := range []uint32{4, 16, odd1, odd2} {
		Bits(b)
	}
	Float(noiseSlope)
	Float(noiseLimit)
	l := lottery{x: Arg("x_base"), winner: Reg(), best: Vec(), invT: Broadcast("invT")}
	l.a, l.b, l.ids = broadcastInt("a"), broadcastInt("b"), broadcastInt("first")
	lanes, v := Data("lanes", 0, 1, 2, 3), Vec()
	LDRQ(v, lanes, 0)
	ADD(S4, l.ids, l.ids, v)
	Free(v)
	Free(lanes)
	return l
}

func broadcastInt(param string) V {
	r, v := Arg(param), Vec()
	DUPReg(S4, v, r)
	Free(r)
	return v
}

// rivals branches where one of the next 16 tokens may have a score above the best.
func (l lottery) rivals(label string) {
	h := Vecs(4)
	MOV(h[0], l.ids)
	for i := 1; i < len(h); i++ {
		ADD(S4, h[i], h[i-1], Bits(4))
	}
	l.hash(h)
	bound := Vecs(4)
	each(h, func(i int) { USHR(S4, h[i], h[i], 1) })
	each(h, func(i int) { SCVTF(S4, h[i], h[i]) })
	each(h, func(i int) { SCVTF(S4, h[i], h[i]) }) // the bits of the float, as a number
	each(h, func(i int) { MOV(bound[i], Float(noiseLimit)) })
	each(h, func(i int) { FMLS(S4, bound[i], h[i], Float(noiseSlope)) })
	Load(h, l.x, 0)
	each(h, func(i int) { FMUL(S4, h[i], h[i], l.invT) })
	each(h, func(i int) { FADD(S4, h[i], h[i], bound[i]) })
	each(h, func(i int) { FCMGT(S4, h[i], h[i], l.best) })
	ORR(B16, h[0], h[0], h[1])
	ORR(B16, h[2], h[2], h[3])
	ORR(B16, h[0], h[0], h[2])
	any(h[0], "CBNZ", label)
	Free(append(h, bound...)...)
}

// any overwrites v and branches by whether a lane of v has a bit set.
func any(v V, branch, label string) {
	r := Reg()
	UMAXV(S4, v, v)
	UMOV(S4, r, v, 0)
	Text("%s %v, %s", branch, r, label)
	Free(r)
}

func each(v []V, step func(i int)) {
	for i := range v {
		step(i)
	}
}

// hash turns ids into their hashes.
func (l lottery) hash(h []V) {
	each(h, func(i int) { EOR(B16, h[i], h[i], l.a) })
	mix32(h)
	each(h, func(i int) { ADD(S4, h[i], h[i], l.b) })
	mix32(h)
}

// mix32 is its twin.
func mix32(x []V) {
	t := Vecs(len(x))
	for _, round := range []struct {
		shift int
		odd   uint32
	}{{16, odd1}, {15, odd2}, {16, 0}} {
		each(x, func(i int) { USHR(S4, t[i], x[i], round.shift) })
		each(x, func(i int) { EOR(B16, x[i], x[i], t[i]) })
		if round.odd != 0 {
			each(x, func(i int) { MUL(S4, x[i], x[i], Bits(round.odd)) })
		}
	}
	Free(t...)
}

// four computes the scores of the next four tokens and moves best and winner where one is greater: to the lowest id of the
// greatest. A score that is greater is no NaN.
func (l lottery) four() {
	h, score := Vec(), Vec()
	MOV(h, l.ids)
	l.hash([]V{h})
	noise := gumbel(h)
	LDRQ(score, l.x, 0)
	FMUL(S4, score, score, l.invT)
	FADD(S4, score, score, noise)
	greater, t := h, noise
	FCMGT(S4, greater, score, l.best)
	MOV(t, greater)
	any(t, "CBZ", "lower")

	top, equal, negInf := greater, t, Temporary(negInfBits)
	BSL(B16, greater, score, negInf)
	FMAXV(S4, top, top)
	DUP(S4, l.best, top, 0)
	FCMEQ(S4, equal, score, l.best)
	ORN(B16, equal, l.ids, equal) // not equal: the largest id
	UMINV(S4, equal, equal)
	UMOV(S4, l.winner, equal, 0)
	Label("lower")
	Free(h, score, noise, negInf)
}

// gumbel is its twin. It keeps h.
func gumbel(h V) V {
	inverse := Vec()
	NOT(B16, inverse, h)
	e, f := LogParts(unit(inverse))
	Free(inverse)
	w, whole := unit(h), Vec()
	FNEG(S4, w, w)
	FCMEQ0(S4, whole, e)
	BIT(B16, f, w, whole)
	Free(w, whole)
	g := Log1p(e, f)
	FNEG(S4, g, g)
	g = Log1p(LogParts(g))
	FNEG(S4, g, g)
	return g
}

// unit is its twin. It keeps h.
func unit(h V) V {
	low, high := Vec(), Vec()
	with := func(c float64, step func(c V)) {
		k := Temporary(math.Float32bits(float32(c)))
		step(k)
		Free(k)
	}
	SHL(S4, low, h, 16)
	USHR(S4, low, low, 16)
	SCVTF(S4, low, low)
	with(0.5, func(c V) { FADD(S4, low, low, c) })
	with(0x1p-32, func(c V) { FMUL(S4, low, low, c) })
	USHR(S4, high, h, 16)
	SCVTF(S4, high, high)
	with(0x1p-16, func(c V) { FMLA(S4, low, high, c) })
	Free(high)
	return low
}
