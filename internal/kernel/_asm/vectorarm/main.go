// Command vectorarm generates the arm64 kernels of vector.go, clamped.go and quantize.go.
package main

import (
	. "grove/internal/kernel/_asm/arm64"
	. "grove/internal/kernel/_asm/neon"
)

func main() {
	sum()
	sumSquares()
	elementwise()
	gated("siluMulNEON", func() {}, func(e, g []V) { both(func(i int) { FNEG(S4, e[i], g[i]) }) })
	clampedSwiGLU()
	gated("geluMulNEON", loadGelu, geluArg)
	gelu()
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

// both emits a step for each of the two registers that hold eight elements.
func both(step func(i int)) {
	step(0)
	step(1)
}

func sum() {
	Func("sumNEON", "func(x []float32, tail *[32]float32) float32",
		"sumNEON is sumGo. The whole blocks of 32 come from x, the rest, with zeros behind it, from tail.")
	acc, v := Accumulators(0), Vecs(8)
	Blocks(func(x R) {
		Load(v, x, 0)
		for i := range acc {
			FADD(S4, acc[i], acc[i], v[i])
		}
	})
	ResultFloat("ret", Fold(acc, Add))
	Return()
}

func sumSquares() {
	Func("sumSquaresNEON", "func(x []float32, tail *[32]float32) float32",
		"sumSquaresNEON is sumSquaresGo. The whole blocks of 32 come from x, the rest, with zeros behind it, from tail.")
	acc, v := Accumulators(0), Vecs(8)
	Blocks(func(x R) {
		Load(v, x, 0)
		for i := range acc {
			FMLA(S4, acc[i], v[i], v[i])
		}
	})
	ResultFloat("ret", Fold(acc, Add))
	Return()
}

// elementwise emits the functions that take a few instructions an element. All take the elements up
// to the last multiple of 8 of x.
func elementwise() {
	Func("mulTwiceNEON", "func(dst, x []float32, a float32, w []float32)", "mulTwiceNEON is mulTwiceGo.")
	dst, x, w, a, v, u := Arg("dst_base"), Arg("x_base"), Arg("w_base"), Broadcast("a"), Vecs(2), Vecs(2)
	Each("x", func() {
		Load(v, x, 0)
		Load(u, w, 0)
		both(func(i int) { FMUL(S4, v[i], v[i], a) })
		both(func(i int) { FMUL(S4, v[i], v[i], u[i]) })
		Store(v, dst, 0)
	}, dst, x, w)
	Return()

	Func("shiftNEON", "func(dst, x []float32, a float32)", "shiftNEON is shiftGo.")
	dst, x, a, v = Arg("dst_base"), Arg("x_base"), Broadcast("a"), Vecs(2)
	Each("x", func() {
		Load(v, x, 0)
		both(func(i int) { FADD(S4, v[i], v[i], a) })
		Store(v, dst, 0)
	}, dst, x)
	Return()

	Func("addNEON", "func(dst, x []float32)", "addNEON is addGo.")
	dst, x, v, u = Arg("dst_base"), Arg("x_base"), Vecs(2), Vecs(2)
	Each("x", func() {
		Load(v, dst, 0)
		Load(u, x, 0)
		both(func(i int) { FADD(S4, v[i], v[i], u[i]) })
		Store(v, dst, 0)
	}, dst, x)
	Return()

	Func("scaleNEON", "func(dst, x []float32, a float32)", "scaleNEON is scaleGo.")
	dst, x, a, v = Arg("dst_base"), Arg("x_base"), Broadcast("a"), Vecs(2)
	Each("x", func() {
		Load(v, x, 0)
		both(func(i int) { FMUL(S4, v[i], v[i], a) })
		Store(v, dst, 0)
	}, dst, x)
	Return()

	Func("addScaledNEON", "func(dst []float32, a float32, x []float32)", "addScaledNEON is addScaledGo.")
	dst, x, a, v, u = Arg("dst_base"), Arg("x_base"), Broadcast("a"), Vecs(2), Vecs(2)
	Each("x", func() {
		Load(v, dst, 0)
		Load(u, x, 0)
		both(func(i int) { FMLA(S4, v[i], u[i], a) })
		Store(v, dst, 0)
	}, dst, x)
	Return()
}

// logistic turns g into g / (1 + Exp32(e)).
func logistic(g, e []V) {
	Exp(e, false)
	both(func(i int) { FADD(S4, e[i], e[i], Float(1)) })
	both(func(i int) { FDIV(S4, g[i], g[i], e[i]) })
}

func loadLogistic() {
	LoadExp(false)
	Float(1)
}

// gated emits (g / (1 + Exp32(e))) * u, where e is a function of g.
func gated(name string, load func(), arg func(e, g []V)) {
	Func(name, "func(dst, gate, up []float32)", name+" is its portable twin, for the elements up to the last multiple of 8 of gate.")
	loadLogistic()
	load()
	dst, gate, up, g, u, e := Arg("dst_base"), Arg("gate_base"), Arg("up_base"), Vecs(2), Vecs(2), Vecs(2)
	Each("gate", func() {
		Load(g, gate, 0)
		Load(u, up, 0)
		arg(e, g)
		logistic(g, e)
		both(func(i int) { FMUL(S4, g[i], g[i], u[i]) })
		Store(g, dst, 0)
	}, dst, gate, up)
	Return()
}

// clampedSwiGLU emits the gate of gpt-oss. FMIN and FMAX keep a NaN.
func clampedSwiGLU() {
	Func("clampedSwiGLUNEON", "func(dst, gate, up []float32)",
		"clampedSwiGLUNEON is clampedSwiGLUGo, for the elements up to the last multiple of 8 of gate.")
	loadLogistic()
	top, bottom, alpha := Float(7), Float(-7), Float(-1.702)
	dst, gate, up, g, u, e := Arg("dst_base"), Arg("gate_base"), Arg("up_base"), Vecs(2), Vecs(2), Vecs(2)
	Each("gate", func() {
		Load(g, gate, 0)
		Load(u, up, 0)
		both(func(i int) { FMIN(S4, g[i], g[i], top) })
		both(func(i int) { FMIN(S4, u[i], u[i], top) })
		both(func(i int) { FMAX(S4, u[i], u[i], bottom) })
		both(func(i int) { FMUL(S4, e[i], g[i], alpha) })
		logistic(g, e)
		both(func(i int) { FADD(S4, u[i], u[i], Float(1)) })
		both(func(i int) { FMUL(S4, g[i], g[i], u[i]) })
		Store(g, dst, 0)
	}, dst, gate, up)
	Return()
}

const (
	gelu1 = -0x1.988454p+0
	gelu3 = -0x1.2444f2p-4
)

func loadGelu() {
	Float(gelu1)
	Float(gelu3)
}

// geluArg makes e -2z of GeluMul.
func geluArg(e, g []V) {
	square := Vecs(2)
	both(func(i int) { FMUL(S4, square[i], g[i], g[i]) })
	both(func(i int) { MOV(e[i], Float(gelu1)) })
	both(func(i int) { FMLA(S4, e[i], square[i], Float(gelu3)) })
	both(func(i int) { FMUL(S4, e[i], e[i], g[i]) })
	Free(square...)
}

func gelu() {
	Func("geluNEON", "func(dst, x []float32)", "geluNEON is geluGo, for the elements up to the last multiple of 8 of x.")
	loadLogistic()
	loadGelu()
	dst, x, g, e := Arg("dst_base"), Arg("x_base"), Vecs(2), Vecs(2)
	Each("x", func() {
		Load(g, x, 0)
		geluArg(e, g)
		logistic(g, e)
		Store(g, dst, 0)
	}, dst, x)
	Return()
}

func silu() {
	Func("siluNEON", "func(dst, x []float32)", "siluNEON is siluGo, for the elements up to the last multiple of 8 of x.")
	loadLogistic()
	dst, x, g, e := Arg("dst_base"), Arg("x_base"), Vecs(2), Vecs(2)
	Each("x", func() {
		Load(g, x, 0)
		both(func(i int) { FNEG(S4, e[i], g[i]) })
		logistic(g, e)
		Store(g, dst, 0)
	}, dst, x)
	Return()
}

func sigmoid() {
	Func("sigmoidNEON", "func(dst, x []float32)", "sigmoidNEON is sigmoidGo, for the elements up to the last multiple of 8 of x.")
	loadLogistic()
	dst, x, one, e := Arg("dst_base"), Arg("x_base"), Vecs(2), Vecs(2)
	Each("x", func() {
		Load(e, x, 0)
		both(func(i int) { FNEG(S4, e[i], e[i]) })
		both(func(i int) { MOV(one[i], Float(1)) })
		logistic(one, e)
		Store(one, dst, 0)
	}, dst, x)
	Return()
}

// softplus emits one register after the other, as there are many constants. FMAX keeps a NaN.
func softplus() {
	Func("softplusNEON", "func(dst, x []float32)", "softplusNEON is softplusGo, for the elements up to the last multiple of 8 of x.")
	LoadExp(true)
	LoadLog()
	dst, x, v, a, s := Arg("dst_base"), Arg("x_base"), Vec(), Vec(), Vec()
	Each("x", func() {
		for i := range 2 {
			LDRQ(v, x, 16*i)
			FABS(S4, a, v)
			FNEG(S4, a, a)
			Exp([]V{a}, true)
			FADD(S4, s, a, Float(1))
			k, f := LogParts(s)
			small := Vec()
			FCMEQ0(S4, small, k)
			BIT(B16, f, a, small)
			Free(small)
			l := Log1p(k, f)
			ZERO(a)
			FMAX(S4, v, v, a)
			FADD(S4, v, v, l)
			STRQ(v, dst, 16*i)
		}
	}, dst, x)
	Return()
}

func softcap() {
	Func("softcapNEON", "func(x []float32, limit float32)",
		"softcapNEON is softcapGo, for the elements up to the last multiple of 8 of x.")
	LoadTanh()
	x, limit, v := Arg("x_base"), Broadcast("limit"), Vecs(2)
	Each("x", func() {
		Load(v, x, 0)
		both(func(i int) { FDIV(S4, v[i], v[i], limit) })
		Tanh(v)
		both(func(i int) { FMUL(S4, v[i], v[i], limit) })
		Store(v, x, 0)
	}, x)
	Return()
}

// rotation emits the loops of both kinds of rotation: over steps of four pairs, bytes wide in a head,
// and within over heads. load and store move the pairs of a head at x.
func rotation(bytes int, load, store func(first, second V, x R)) {
	first, size, cos, sin, pairs := Arg("x"), Arg("size"), Arg("cos"), Arg("sin"), Arg("pairs")
	Text("LSL $2, %v", size)
	x, heads, head := Reg(), Arg("heads"), Reg()
	v, y, c, s, minus := Vecs(2), Vecs(2), Vec(), Vec(), Vec()
	Label("pairs")
	LDRQ(c, cos, 0)
	LDRQ(s, sin, 0)
	FNEG(S4, minus, s)
	Text("MOVD %v, %v", first, x)
	Text("MOVD %v, %v", heads, head)
	Loop("heads", head, func() {
		load(v[0], v[1], x)
		FMUL(S4, y[0], v[1], minus)
		FMUL(S4, y[1], v[1], c)
		FMLA(S4, y[0], v[0], c)
		FMLA(S4, y[1], v[0], s)
		store(y[0], y[1], x)
		Text("ADD %v, %v", size, x)
	})
	Advance(16, cos, sin)
	Advance(bytes, first)
	Text("SUBS $4, %v, %v", pairs, pairs)
	Text("BNE pairs")
	Return()
}

func ropeNeox() {
	Func("ropeNeoxNEON", "func(x *float32, heads, size, half, pairs int, cos, sin *float32)",
		"ropeNeoxNEON rotates the pairs (i, i+half) of each head, i < pairs. pairs is a positive multiple of 4,",
		"heads is positive.")
	half := Arg("half")
	Text("LSL $2, %v", half)
	rotation(16, func(first, second V, x R) {
		LDRQ(first, x, 0)
		LDRQX(second, x, half)
	}, func(first, second V, x R) {
		STRQ(first, x, 0)
		STRQX(second, x, half)
	})
}

func ropePairs() {
	Func("ropePairsNEON", "func(x *float32, heads, size, pairs int, cos, sin *float32)",
		"ropePairsNEON rotates the pairs (2i, 2i+1) of each head, i < pairs. pairs is a positive multiple of 4,",
		"heads is positive.")
	rotation(32, func(first, second V, x R) { LD2(S4, []V{first, second}, x) },
		func(first, second V, x R) { ST2(S4, []V{first, second}, x) })
}

func maxAbsBits() {
	Func("maxAbsBitsNEON", "func(x []float32) uint32",
		"maxAbsBitsNEON is maxAbsBitsGo, for the elements up to the last multiple of 8.")
	sign, x, m, v := Bits(1<<31), Arg("x_base"), Vecs(2), Vecs(2)
	both(func(i int) { ZERO(m[i]) })
	Each("x", func() {
		Load(v, x, 0)
		both(func(i int) { BIC(B16, v[i], v[i], sign) })
		both(func(i int) { UMAX(S4, m[i], m[i], v[i]) })
	}, x)
	UMAX(S4, m[0], m[0], m[1])
	UMAXV(S4, m[0], m[0])
	r := Reg()
	UMOV(S4, r, m[0], 0)
	Result("ret", r)
	Return()
}
