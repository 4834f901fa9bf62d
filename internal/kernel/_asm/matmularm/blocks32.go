package main

import (
	"fmt"

	. "grove/internal/kernel/_asm/arm64"
)

// A type32 is a type of blocks of 32 inputs whose packed block begins with its scales.
type type32 struct {
	name    string
	head    int // bytes of the scales of 16 outputs
	bits    int // bytes of the inputs of 16 outputs
	less    int // what unpacked weights are too large by: a power of two
	offsets bool
	weights func(t *tile, disp, part int) weights
}

var (
	iq4Values = [16]int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	fp4Values = [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

var types32 = []type32{
	{name: "Q8_0", head: 32, bits: 8 * wide, weights: (*tile).int8s},
	{name: "Q4_0", head: 32, bits: 4 * wide, less: 8, weights: (*tile).nibbles},
	{name: "Q4_1", head: 64, bits: 4 * wide, offsets: true, weights: (*tile).nibbles},
	{name: "Q5_0", head: 32, bits: 5 * wide, less: 16, weights: (*tile).fiveBits},
	{name: "Q5_1", head: 64, bits: 5 * wide, offsets: true, weights: (*tile).fiveBits},
	{name: "IQ4_NL", head: 32, bits: 4 * wide, weights: codebook("iq4", iq4Values)},
	{name: "MXFP4", head: 16, bits: 4 * wide, weights: codebook("fp4", fp4Values)},
}

// tile32 emits the product of n rows by a group of weights of a type.
func tile32(k type32, matrix bool) {
	summed := k.less > 0 || k.offsets
	function(k.name, matrix, summed, 5, frameTop, func(t *tile) {
		perRows(t.rows, t.fewest, blockRows, func(n int) {
			t.n = n
			Label(fmt.Sprintf("loop%d", n))
			Text("MOVD %v, %v", t.w, t.factors)
			step := 16
			if k.head == 16 {
				step = 8
			}
			t.eachHalf(step, func() {
				t.start(k.less)
				for part := range 2 {
					t.add(k.weights(t, k.head, part), part)
				}
				t.finish32(k)
			})
			Text("ADD $%d, %v, %v", k.head+k.bits, t.w, t.w)
			Text("ADD $32, %v, %v", t.x, t.x)
			Text("ADD $4, %v, %v", t.d, t.d)
			if summed {
				Text("ADD $4, %v, %v", t.sum, t.sum)
			}
			Text("SUBS $1, %v, %v", t.nb, t.nb)
			Text("BNE loop%d", n)
			if n > t.fewest {
				Text("B store")
			}
		})
	})
}

// finish32 emits chain = sum * (d * dx) + chain, and for a type with offsets chain = sum(q) * (m * dx) + chain.
func (t *tile) finish32(k type32) {
	Text("MOVD %v, %v", t.d, t.at)
	if k.offsets {
		Text("MOVD %v, %v", t.sum, t.at2)
	}
	t.each(func(c int) []V {
		d := Vec()
		if k.head == 16 {
			t.exponents(d, c)
			return []V{d}
		}
		LDRD(d, t.factors, 8*c)
		FCVTL(H4, d, d)
		if !k.offsets {
			return []V{d}
		}
		m := Vec()
		LDRD(m, t.factors, 32+8*c)
		FCVTL(H4, m, m)
		return []V{d, m}
	}, func(u int) []V {
		dx := t.value(t.at, t.stride, u)
		if !k.offsets {
			return []V{dx}
		}
		sums := t.value(t.at2, t.stride, u)
		SCVTF(S4, sums, sums)
		return []V{dx, sums}
	}, func(u, c int, of, x []V) {
		acc, scale := t.acc[u][c], Vec()
		t.continued(u, c, func(chain V) {
			SCVTF(S4, acc, acc)
			FMUL(S4, scale, of[0], x[0])
			FMLA(S4, chain, acc, scale)
			if k.offsets {
				FMUL(S4, scale, of[1], x[0])
				FMLA(S4, chain, x[1], scale)
			}
		})
		Free(scale)
	})
}

// exponents emits the scales of MXFP4, 2^(e-128): the upper 16 bits are (e-1)<<7, or for e of 0 and 1 the subnormal
// 2^5<<e, which is equal for e = 2 and smaller than the other from there on if shifted by 2.
func (t *tile) exponents(d V, c int) {
	e, small := Vec(), Vec()
	LDRD(e, t.factors, 0)
	USHLL(B8, e, e, 0)
	MOVI(H8, small, 2, 0)
	SMIN(H8, small, small, e)
	MOVI(H8, d, 1<<5, 0)
	USHL(H8, small, d, small)
	MOVI(H8, d, 1, 0)
	SUB(H8, e, e, d)
	SHL(H8, e, e, 7)
	SMAX(H8, e, e, small)
	SHLL([]Arr{H4, H8}[c], d, e)
	Free(e, small)
}
