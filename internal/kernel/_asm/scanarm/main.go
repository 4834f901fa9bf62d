// Command scanarm generates the arm64 kernels of recurrences. Lanes are the columns of a state.
package main

import (
	"fmt"

	. "grove/internal/kernel/_asm/arm64"
	. "grove/internal/kernel/_asm/neon"
)

func main() {
	for _, registers := range []int{4, 1} {
		read(registers)
		write(registers, false)
		write(registers, true)
		convolution(registers, false)
		convolution(registers, true)
	}
	selective(2)
	selective(1)
	exponential()
	Generate()
}

// named returns the name of a kernel of n registers, and a phrase for its comment.
func named(kernel string, n int) (name, columns string) {
	return fmt.Sprintf("%s%dNEON", kernel, n), fmt.Sprintf("%d columns", 4*n)
}

// each emits a step for every register.
func each(v []V, step func(i int)) {
	for i := range v {
		step(i)
	}
}

func cleared(n int) []V {
	v := Vecs(n)
	each(v, func(i int) { ZERO(v[i]) })
	return v
}

// floats turns parameters that count floats into bytes.
func floats(r ...R) {
	for _, r := range r {
		Text("LSL $2, %v", r)
	}
}

// four returns a register that holds the bytes of a float.
func four() R {
	r := Reg()
	Text("MOVD $4, %v", r)
	return r
}

// rows emits a loop over the n > 0 rows of states, stride floats apart.
func rows(body func(), states ...R) {
	stride, n := Arg("stride"), Arg("n")
	floats(stride)
	Loop("row", n, func() {
		body()
		for _, s := range states {
			Text("ADD %v, %v", stride, s)
		}
	})
	Free(stride, n)
}

// found emits what becomes of the sums p of a lookup: u = beta * (v - c*p), at the parameter u.
func found(p []V) {
	u, v, c, beta, x := Arg("u"), Arg("v"), Broadcast("c"), Broadcast("beta"), Vecs(len(p))
	each(p, func(i int) { FMUL(S4, p[i], p[i], c) })
	Load(x, v, 0)
	each(p, func(i int) { FSUB(S4, p[i], x[i], p[i]) })
	each(p, func(i int) { FMUL(S4, p[i], p[i], beta) })
	Store(p, u, 0)
}

func read(n int) {
	name, columns := named("read", n)
	Func(name, "func(u, s *float32, stride int, k *float32, n int, v *float32, c, beta float32)",
		name+" is read, for "+columns+" of a state with n > 0 rows.")
	s, k, step := Arg("s"), Arg("k"), four()
	p, x, key := cleared(n), Vecs(n), Vec()
	rows(func() {
		LD1RPost(S4, key, k, step)
		Load(x, s, 0)
		each(p, func(i int) { FMLA(S4, p[i], x[i], key) })
	}, s)
	Free(x...)
	Free(s, k, step)
	found(p)
	Return()
}

func write(n int, reads bool) {
	kernel, signature := "write", "func(o, u, to, s *float32, stride int, k, q, a *float32, step, n int)"
	if reads {
		kernel, signature = "writeRead", "func(o, u, to, s *float32, stride int, k, q, a *float32, step, n int, next, v *float32, c, beta float32)"
	}
	name, columns := named(kernel, n)
	Func(name, signature, name+" is write, for "+columns+" of states with n > 0 rows.")
	to, s, k, q, a, step, u, float := Arg("to"), Arg("s"), Arg("k"), Arg("q"), Arg("a"), Arg("step"), Arg("u"), four()
	floats(step)
	var next R
	var p []V
	if reads {
		next, p = Arg("next"), cleared(n)
	}
	values, v, sum := Vecs(n), Vecs(n), cleared(n)
	factor, key, query, other := Vec(), Vec(), Vec(), Vec()
	Load(values, u, 0)
	rows(func() {
		LD1RPost(S4, factor, a, step)
		LD1RPost(S4, key, k, float)
		LD1RPost(S4, query, q, float)
		Load(v, s, 0)
		each(v, func(j int) { FMUL(S4, v[j], v[j], factor) })
		each(v, func(j int) { FMLA(S4, v[j], values[j], key) })
		Store(v, to, 0)
		each(v, func(j int) { FMLA(S4, sum[j], v[j], query) })
		if reads {
			LD1RPost(S4, other, next, float)
			each(v, func(j int) { FMLA(S4, p[j], v[j], other) })
		}
	}, to, s)
	o := Arg("o")
	Store(sum, o, 0)
	if reads {
		Free(append(append(values, v...), sum...)...)
		Free(to, s, k, q, a, step, u, float, next, o)
		found(p)
	}
	Return()
}

func convolution(n int, silu bool) {
	kernel := "taps"
	if silu {
		kernel = "tapsSilu"
	}
	name, columns := named(kernel, n)
	Func(name, "func(dst *float32, rows *[8]*float32, taps int, w *float32, stride int, bias *float32, blocks int)",
		name+" is the convolution of blocks > 0 times "+columns+" with taps > 0 rows; a nil bias is none.")
	if silu {
		LoadExp(false)
		Float(1)
	}
	dst, inputs, w, bias, blocks, stride := Arg("dst"), Arg("rows"), Arg("w"), Arg("bias"), Arg("blocks"), Arg("stride")
	floats(stride)
	offset, j, weights, row, input := Reg(), Reg(), Reg(), Reg(), Reg()
	sum, x := Vecs(n), Vecs(n)
	Text("MOVD $0, %v", offset)
	Loop("block", blocks, func() {
		each(sum, func(i int) { ZERO(sum[i]) })
		Text("CBZ %v, sum", bias)
		Load(sum, bias, 0)
		Advance(16*n, bias)
		Label("sum")
		taps := Arg("taps")
		Text("MOVD %v, %v", w, weights)
		Text("MOVD %v, %v", inputs, input)
		Loop("tap", taps, func() {
			Text("MOVD (%v), %v", input, row)
			Text("ADD %v, %v", offset, row)
			Advance(8, input)
			factors := Vecs(n)
			Load(x, row, 0)
			Load(factors, weights, 0)
			each(sum, func(i int) { FMLA(S4, sum[i], x[i], factors[i]) })
			Free(factors...)
			Text("ADD %v, %v", stride, weights)
		})
		Free(taps)
		if silu {
			for i := 0; i < n; i += 2 {
				part, e := sum[i:min(i+2, n)], x[i:min(i+2, n)]
				each(part, func(i int) { FNEG(S4, e[i], part[i]) })
				Exp(e, false)
				each(part, func(i int) { FADD(S4, e[i], e[i], Float(1)) })
				each(part, func(i int) { FDIV(S4, part[i], part[i], e[i]) })
			}
		}
		Store(sum, dst, 0)
		Advance(16*n, dst, offset, w)
	})
	Free(j)
	Return()
}

func selective(n int) {
	name, columns := named("selective", n)
	Func(name, "func(y, to, s *float32, stride int, x, dt, b, c, a *float32, aStride, n int, d *float32)",
		name+" is Mamba1.channels, for "+columns+" of states with n > 0 rows.")
	LoadExp(false)
	to, s, b, c, a, aStride, x, times, float := Arg("to"), Arg("s"), Arg("b"), Arg("c"), Arg("a"), Arg("aStride"), Arg("x"), Arg("dt"), four()
	floats(aStride)
	dt, u, sum, e := Vecs(n), Vecs(n), cleared(n), Vecs(n)
	Load(dt, times, 0)
	Load(u, x, 0)
	each(u, func(i int) { FMUL(S4, u[i], u[i], dt[i]) })
	rows(func() {
		Load(e, a, 0)
		each(e, func(j int) { FMUL(S4, e[j], e[j], dt[j]) })
		Text("ADD %v, %v", aStride, a)
		Exp(e, false)
		h, key := Vecs(n), Vec()
		Load(h, s, 0)
		each(e, func(j int) { FMUL(S4, e[j], e[j], h[j]) })
		LD1RPost(S4, key, b, float)
		each(e, func(j int) { FMLA(S4, e[j], u[j], key) })
		Store(e, to, 0)
		LD1RPost(S4, key, c, float)
		each(e, func(j int) { FMLA(S4, sum[j], e[j], key) })
		Free(append(h, key)...)
	}, to, s)
	y, d := Arg("y"), Arg("d")
	Load(dt, d, 0)
	Load(u, x, 0)
	each(sum, func(i int) { FMLA(S4, sum[i], dt[i], u[i]) })
	Store(sum, y, 0)
	Return()
}

func exponential() {
	Func("expNEON", "func(dst, x []float32)", "expNEON is exp, for the elements up to the last multiple of 8 of x.")
	LoadExp(false)
	dst, x, v := Arg("dst_base"), Arg("x_base"), Vecs(2)
	Each("x", func() {
		Load(v, x, 0)
		Exp(v, false)
		Store(v, dst, 0)
	}, dst, x)
	Return()
}
