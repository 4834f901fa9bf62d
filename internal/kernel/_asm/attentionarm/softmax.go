package main

import (
	. "grove/internal/kernel/_asm/arm64"
	. "grove/internal/kernel/_asm/neon"
)

const negInfBits = 0xff800000

// softmax emits a loop over blocks of scores for their maxima and one for their weights: one loop for both would wait for
// each maximum. The registers i and i+8 of a block hold values of the same of the 32 accumulators.
func softmax() {
	Func("softmaxNEON", "func(s *float32, n int, scale float32, max, sum *float32, ahead *byte, lines int)",
		"softmaxNEON is softmaxGo for n blocks, one behind the other; n is positive. Meanwhile it prefetches, for each",
		"block, a positive number of cache lines from ahead on.")
	LoadExp(true)
	scale, none := ArgFloat("scale"), Bits(negInfBits)
	block, n, maxima := Arg("s"), Arg("n"), Arg("max")
	Loop("maximum", n, func() {
		max, later := Vecs(8), Vecs(4)
		for i := 0; i < 16; i += 4 {
			x := later
			if i < 8 {
				x = max[i : i+4]
			}
			Load(x, block, 16*i)
			for j := range x {
				FMULElem(S4, x[j], x[j], scale, 0)
			}
			Store(x, block, 16*i)
			for j := range x {
				if i < 8 {
					atLeast(x[j], none)
				} else {
					Max(x[j], max[i-8+j])
				}
			}
		}
		STRS(Fold(max, Max), maxima, 0)
		Advance(4*PageSlots, block)
		Advance(4, maxima)
		Free(append(max, later...)...)
	})
	weights(block, n, maxima)
	Return()
}

// atLeast replaces a NaN in v by none, the value that accumulators of maxima begin with.
func atLeast(v, none V) {
	greater := Vec()
	FCMGT(S4, greater, v, none)
	BIF(B16, v, none, greater)
	Free(greater)
}

// weights emits the second loop. A sum of accumulators is folded as soon as both are known.
func weights(block, n, maxima R) {
	Free(block, n, maxima)
	block, n, maxima = Arg("s"), Arg("n"), Arg("max")
	sums, ahead, lines, left := Arg("sum"), Arg("ahead"), Arg("lines"), Reg()
	m := Vec()
	Loop("weights", n, func() {
		Text("MOVD %v, %v", lines, left)
		Loop("prefetch", left, func() {
			prefetch(ahead, 0)
			Advance(cacheLine, ahead)
		})
		LDRS(m, maxima, 0)
		DUP(S4, m, m, 0)
		sum := make([]V, 4)
		for i := range sum {
			x := Vecs(4)
			at := func(j int) int { return 16 * (i + 4*(j/2) + 8*(j%2)) } // accumulators i and i+4
			for j := range x {
				LDRQ(x[j], block, at(j))
				FSUB(S4, x[j], x[j], m)
			}
			Exp(x, true)
			for j := range x {
				STRQ(x[j], block, at(j))
			}
			Add(x[1], x[0])
			Add(x[3], x[2])
			Add(x[2], x[0])
			sum[i] = x[0]
			Free(x[1:]...)
			if i >= 2 {
				Add(sum[i], sum[i-2])
				Free(sum[i])
			}
		}
		STRS(Fold(sum[:2], Add), sums, 0)
		Free(sum[:2]...)
		Advance(4*PageSlots, block)
		Advance(4, maxima, sums)
	})
}

func capScores() {
	Func("capScoresNEON", "func(s *[64]float32, scale, softcap float32)", "capScoresNEON is capScoresGo.")
	LoadTanh()
	s, scale, softcap, none, n := Arg("s"), ArgFloat("scale"), Broadcast("softcap"), Bits(negInfBits), Reg()
	x, invisible := Vecs(2), Vecs(2)
	Text("MOVD $%d, %v", PageSlots/8, n)
	Loop("loop", n, func() {
		Load(x, s, 0)
		for i := range x {
			FMULElem(S4, x[i], x[i], scale, 0)
			FCMEQ(S4, invisible[i], x[i], none)
			FDIV(S4, x[i], x[i], softcap)
		}
		Tanh(x)
		for i := range x {
			FMUL(S4, x[i], x[i], softcap)
			BIT(B16, x[i], none, invisible[i])
		}
		Store(x, s, 0)
		Advance(32, s)
	})
	Return()
}

func mergeSums() {
	Func("mergeSumsNEON", "func(m, l, mb, lb, x, y *float32)", "mergeSumsNEON is mergeSumsGo for 8 queries.")
	LoadExp(true)
	load := func(name string) []V {
		v, p := Vecs(2), Arg(name)
		Load(v, p, 0)
		Free(p)
		return v
	}
	store := func(v []V, name string) {
		p := Arg(name)
		Store(v, p, 0)
		Free(p)
	}
	old, later, max := load("m"), load("mb"), Vecs(2)
	for i := range max {
		MOV(max[i], old[i])
		Max(later[i], max[i])
		FSUB(S4, old[i], old[i], max[i])
		FSUB(S4, later[i], later[i], max[i])
	}
	store(max, "m")
	Free(max...)
	Exp(old, true)
	Exp(later, true)
	store(old, "x")
	store(later, "y")
	l, lb := load("l"), load("lb")
	for i := range l {
		FMUL(S4, l[i], l[i], old[i])
		FMLA(S4, l[i], lb[i], later[i])
	}
	store(l, "l")
	Return()
}

func merge() {
	Func("mergeNEON", "func(n, size int, o *float32, x, y, ob *float32)",
		"mergeNEON is mergeGo for n queries; size is a multiple of 4, both are positive.")
	queries, size, o, x, y, ob, left := Arg("n"), Arg("size"), Arg("o"), Arg("x"), Arg("y"), Arg("ob"), Reg()
	a, b, v, w := Vec(), Vec(), Vecs(4), Vecs(4)
	values := func(n int) {
		Load(v[:n], o, 0)
		Load(w[:n], ob, 0)
		for i := range n {
			FMULElem(S4, v[i], v[i], a, 0)
		}
		for i := range n {
			FMLAElem(S4, v[i], w[i], b, 0)
		}
		Store(v[:n], o, 0)
		Advance(16*n, o, ob)
	}
	Loop("query", queries, func() {
		LDRS(a, x, 0)
		LDRS(b, y, 0)
		Text("LSR $2, %v, %v", size, left)
		byFours(left, "values", func() { values(4) }, func() { values(1) })
		Advance(4, x, y)
	})
	Return()
}
