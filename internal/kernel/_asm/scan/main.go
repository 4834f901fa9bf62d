// Command scan generates the kernels of recurrences, for AVX2 and for AVX-512. Lanes are the columns of a state, of which a kernel takes
// some registers beside each other.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, s := range []set{{"AVX2", YMM, 2}, {"AVX512", ZMM, 4}} {
		Vector = s.vector
		for _, registers := range []int{4, 1} {
			read(s, registers)
			write(s, registers, false)
			write(s, registers, true)
			writeTwo(s, registers)
			convolution(s, registers, false)
			convolution(s, registers, true)
		}
		selective(s, s.exponentials)
		selective(s, 1)
	}
	Vector = YMM
	exponential()
	Generate()
}

// A set is an instruction set, with the registers of a scan of Mamba 1, which needs many beside them.
type set struct {
	name         string
	vector       func() reg.VecVirtual
	exponentials int
}

// name returns that of a kernel of n registers, and a phrase for its comment.
func (s set) named(kernel string, n int) (name, columns string) {
	return fmt.Sprintf("%s%d%s", kernel, n, s.name), fmt.Sprintf("%d columns", n*Lanes())
}

// some returns n registers.
func some(n int) Vecs { return make(Vecs, n).New() }

// cleared returns n registers of zeros.
func cleared(n int) Vecs {
	v := some(n)
	v.Each(func(i int) { VXORPS(v[i].AsX(), v[i].AsX(), v[i].AsX()) })
	return v
}

// at returns the place of register i behind a pointer.
func at(base reg.Register, i int) Mem { return Mem{Base: base, Disp: i * Lanes() * 4} }

// element returns a vector of copies of the float at an index behind a pointer.
func element(base, i reg.Register) reg.VecVirtual {
	v := Vector()
	VBROADCASTSS(Mem{Base: base, Index: i, Scale: 4}, v)
	return v
}

// rows emits a loop over the rows of states, at least one: body gets the index of the row. The parameters n and stride, in floats, are
// those of the states.
func rows(body func(i reg.GPVirtual), states ...reg.GPVirtual) {
	stride, n, i := Int("stride"), Int("n"), GP64()
	SHLQ(U8(2), stride)
	XORQ(i, i)
	Label("row")
	body(i)
	for _, s := range states {
		ADDQ(stride, s)
	}
	INCQ(i)
	CMPQ(i, n)
	JLT(LabelRef("row"))
}

// found emits what becomes of the sums p of a lookup: u = beta * (v - c*p), at the parameter u.
func found(p Vecs) {
	u, v, c, beta := Int("u"), Int("v"), Broadcast("c"), Broadcast("beta")
	p.Each(func(i int) { VMULPS(p[i], c, p[i]) })
	x := p.New()
	x.Each(func(i int) { VMOVUPS(at(v, i), x[i]) })
	p.Each(func(i int) { VSUBPS(p[i], x[i], p[i]) })
	p.Each(func(i int) { VMULPS(p[i], beta, p[i]) })
	p.Each(func(i int) { VMOVUPS(p[i], at(u, i)) })
}

func read(set set, n int) {
	name, columns := set.named("read", n)
	Func(name, "func(u, s *float32, stride int, k *float32, n int, v *float32, c, beta float32)",
		name+" is read, for "+columns+" of a state with n > 0 rows.")
	s, k, p := Int("s"), Int("k"), cleared(n)
	rows(func(i reg.GPVirtual) {
		key := element(k, i)
		p.Each(func(j int) { VFMADD231PS(at(s, j), key, p[j]) })
	}, s)
	found(p)
	End()
}

func write(set set, n int, reads bool) {
	kernel, signature := "write", "func(o, u, to, s *float32, stride int, k, q, a *float32, step, n int)"
	if reads {
		kernel, signature = "writeRead", "func(o, u, to, s *float32, stride int, k, q, a *float32, step, n int, next, v *float32, c, beta float32)"
	}
	name, columns := set.named(kernel, n)
	Func(name, signature, name+" is write, for "+columns+" of states with n > 0 rows.")
	to, s, k, q, a, step, u := Int("to"), Int("s"), Int("k"), Int("q"), Int("a"), Int("step"), Int("u")
	SHLQ(U8(2), step)
	var next reg.GPVirtual
	var p Vecs
	if reads {
		next, p = Int("next"), cleared(n)
	}
	values, v, sum := some(n), some(n), cleared(n)
	inMemory := set.name == "AVX2" // registers are too few for the values
	if !inMemory {
		values.Each(func(j int) { VMOVUPS(at(u, j), values[j]) })
	}
	rows(func(i reg.GPVirtual) {
		factor := Vector()
		VBROADCASTSS(Mem{Base: a}, factor)
		ADDQ(step, a)
		v.Each(func(j int) { VMULPS(at(s, j), factor, v[j]) })
		key := element(k, i)
		v.Each(func(j int) {
			if inMemory {
				VFMADD231PS(at(u, j), key, v[j])
			} else {
				VFMADD231PS(values[j], key, v[j])
			}
		})
		v.Each(func(j int) { VMOVUPS(v[j], at(to, j)) })
		query := element(q, i)
		v.Each(func(j int) { VFMADD231PS(v[j], query, sum[j]) })
		if reads {
			key := element(next, i)
			v.Each(func(j int) { VFMADD231PS(v[j], key, p[j]) })
		}
	}, to, s)
	o := Int("o")
	sum.Each(func(j int) { VMOVUPS(sum[j], at(o, j)) })
	if reads {
		found(p)
	}
	End()
}

// writeTwo emits two rows of write with a decay each: the state is loaded and stored once.
func writeTwo(set set, n int) {
	name, columns := set.named("writeTwo", n)
	Func(name, "func(o0, o1, u0, u1, to, s *float32, stride int, k0, k1, q0, q1, a *float32, n int)",
		name+" is write for two rows, whose decays are at a, for "+columns+" of states with n > 0 rows.")
	to, s, a := Int("to"), Int("s"), Int("a")
	keys, queries, values := [2]reg.GPVirtual{Int("k0"), Int("k1")}, [2]reg.GPVirtual{Int("q0"), Int("q1")}, [2]reg.GPVirtual{Int("u0"), Int("u1")}
	v, sums := some(n), [2]Vecs{cleared(n), cleared(n)}
	rows(func(i reg.GPVirtual) {
		v.Each(func(j int) { VMOVUPS(at(s, j), v[j]) })
		for r := range 2 {
			factor := Vector()
			VBROADCASTSS(Mem{Base: a, Disp: 4 * r}, factor)
			v.Each(func(j int) { VMULPS(v[j], factor, v[j]) })
			key := element(keys[r], i)
			v.Each(func(j int) { VFMADD231PS(at(values[r], j), key, v[j]) })
			if r == 1 {
				v.Each(func(j int) { VMOVUPS(v[j], at(to, j)) })
			}
			query := element(queries[r], i)
			v.Each(func(j int) { VFMADD231PS(v[j], query, sums[r][j]) })
		}
	}, to, s)
	for r, o := range []reg.GPVirtual{Int("o0"), Int("o1")} {
		sums[r].Each(func(j int) { VMOVUPS(sums[r][j], at(o, j)) })
	}
	End()
}

func convolution(set set, n int, silu bool) {
	kernel := "taps"
	if silu {
		kernel = "tapsSilu"
	}
	name, columns := set.named(kernel, n)
	Func(name, "func(dst *float32, rows *[8]*float32, taps int, w *float32, stride int, bias *float32, blocks int)",
		name+" is the convolution of blocks > 0 times "+columns+" with taps > 0 rows; a nil bias is none.")
	dst, inputs, w, bias, blocks := Int("dst"), Int("rows"), Int("w"), Int("bias"), Int("blocks")
	taps, stride := Int("taps"), Int("stride")
	SHLQ(U8(2), stride)
	offset := GP64()
	XORQ(offset, offset)
	Label("block")
	sum := cleared(n)
	TESTQ(bias, bias)
	JZ(LabelRef("sum"))
	sum.Each(func(i int) { VMOVUPS(Mem{Base: bias, Index: offset, Scale: 1, Disp: i * Lanes() * 4}, sum[i]) })
	Label("sum")
	j, weights := GP64(), GP64()
	XORQ(j, j)
	MOVQ(w, weights)
	Label("tap")
	row := GP64()
	MOVQ(Mem{Base: inputs, Index: j, Scale: 8}, row)
	ADDQ(offset, row)
	x := sum.New()
	x.Each(func(i int) { VMOVUPS(at(row, i), x[i]) })
	sum.Each(func(i int) {
		VFMADD231PS(Mem{Base: weights, Index: offset, Scale: 1, Disp: i * Lanes() * 4}, x[i], sum[i])
	})
	ADDQ(stride, weights)
	INCQ(j)
	CMPQ(j, taps)
	JLT(LabelRef("tap"))
	if silu {
		e := sum.New()
		e.Each(func(i int) { VXORPS(Bits(1<<31), sum[i], e[i]) })
		Exp(e, false)
		e.Each(func(i int) { VADDPS(Float(1), e[i], e[i]) })
		e.Each(func(i int) { VDIVPS(e[i], sum[i], sum[i]) })
	}
	sum.Each(func(i int) { VMOVUPS(sum[i], Mem{Base: dst, Index: offset, Scale: 1, Disp: i * Lanes() * 4}) })
	ADDQ(U32(n*Lanes()*4), offset)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	End()
}

func selective(set set, n int) {
	name, columns := set.named("selective", n)
	Func(name, "func(y, to, s *float32, stride int, x, dt, b, c, a *float32, aStride, n int, d *float32)",
		name+" is Mamba1.channels, for "+columns+" of states with n > 0 rows.")
	to, s, b, c, a, aStride := Int("to"), Int("s"), Int("b"), Int("c"), Int("a"), Int("aStride")
	SHLQ(U8(2), aStride)
	x, times := Int("x"), Int("dt")
	dt, u, sum := some(n), some(n), cleared(n)
	dt.Each(func(i int) { VMOVUPS(at(times, i), dt[i]) })
	u.Each(func(i int) { VMULPS(at(x, i), dt[i], u[i]) })
	rows(func(i reg.GPVirtual) {
		e := some(n)
		e.Each(func(j int) { VMULPS(at(a, j), dt[j], e[j]) })
		ADDQ(aStride, a)
		Exp(e, false)
		e.Each(func(j int) { VMULPS(at(s, j), e[j], e[j]) })
		in := element(b, i)
		e.Each(func(j int) { VFMADD231PS(in, u[j], e[j]) })
		e.Each(func(j int) { VMOVUPS(e[j], at(to, j)) })
		out := element(c, i)
		e.Each(func(j int) { VFMADD231PS(e[j], out, sum[j]) })
	}, to, s)
	y, d := Int("y"), Int("d")
	v := some(n)
	v.Each(func(i int) { VMOVUPS(at(d, i), v[i]) })
	v.Each(func(i int) { VFMADD231PS(at(x, i), v[i], sum[i]) })
	sum.Each(func(i int) { VMOVUPS(sum[i], at(y, i)) })
	End()
}

func exponential() {
	Func("expAVX2", "func(dst, x []float32)", "expAVX2 is exp, for the elements up to the last multiple of 8 of x.")
	dst, x := Base("dst"), Base("x")
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VMOVUPS(At(x, i), v)
		Exp(Vecs{v}, false)
		VMOVUPS(v, At(dst, i))
	})
	End()
}
