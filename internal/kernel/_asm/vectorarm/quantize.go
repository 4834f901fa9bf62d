package main

import (
	. "grove/internal/kernel/_asm/arm64"
	. "grove/internal/kernel/_asm/neon"
)

const infinity = 0x7f800000

// quantize emits the quantisation of blocks of 32 floats.
func quantize() {
	Func("quantizeNEON", "func(q *int8, d *float32, sum *int32, x *float32, nb int)",
		"quantizeNEON quantises nb > 0 blocks of 32 values as [Rows.Quantize] says.")
	q, d, sum, x, nb := Arg("q"), Arg("d"), Arg("sum"), Arg("x"), Arg("nb")
	sign, top, limit, amax, v, t := Bits(1<<31), Float(127), Reg(), Reg(), Vecs(8), Vecs(8)
	Text("MOVD $0x%08x, %v", infinity, limit)
	Label("loop")
	Load(v, x, 0)
	for i := range v {
		BIC(B16, t[i], v[i], sign)
	}
	tree(t, func(d, n V) { UMAX(S4, d, d, n) })
	UMAXV(S4, t[0], t[0])
	UMOV(S4, amax, t[0], 0)
	Text("CMPW %v, %v", limit, amax)
	Text("BHS nonfinite")

	id, infinite := t[1], t[2] // id is infinite where 127/amax overflows
	Text("FDIVS F%d, F%d, F%d", int(t[0]), int(top), int(id))
	Text("FDIVS F%d, F%d, F%d", int(top), int(t[0]), int(t[0]))
	STRS(t[0], d, 0)
	DUPReg(S4, infinite, limit)
	FCMEQ(S4, infinite, id, infinite)
	BIC(B16, id, id, infinite)
	for i := range v {
		FMULElem(S4, v[i], v[i], id, 0)
	}
	for i := range v {
		FCVTNS(S4, v[i], v[i])
	}
	for i := range 4 {
		UZP1(H8, t[i], v[2*i], v[2*i+1])
	}
	tree(v, func(d, n V) { ADD(S4, d, d, n) })
	ADDV(S4, v[0], v[0])
	UZP1(B16, t[0], t[0], t[1])
	UZP1(B16, t[1], t[2], t[3])
	STRS(v[0], sum, 0)
	STPQ(t[0], t[1], q, 0)

	Label("next")
	Advance(128, x)
	Advance(32, q)
	Advance(4, d, sum)
	Text("SUBS $1, %v, %v", nb, nb)
	Text("BNE loop")
	Return()

	Label("nonfinite")
	ZERO(t[0])
	STPQ(t[0], t[0], q, 0)
	STRS(t[0], sum, 0)
	Text("MOVD $0x7fc00000, %v", amax)
	Text("MOVW %v, (%v)", amax, d)
	Text("B next")
}

// tree combines registers into the first one.
func tree(v []V, combine func(d, n V)) {
	for half := len(v) / 2; half > 0; half /= 2 {
		for i := range half {
			combine(v[i], v[i+half])
		}
	}
}
