package main

import (
	"fmt"

	. "grove/internal/kernel/_asm/arm64"
)

// A superType is a type of super-blocks: 8 sub-blocks of 32 inputs that share d, and perhaps dmin. Integers of scales and minima become
// floats in the frame, once a super-block. They and their products with sums are exact as floats; where a product is zero its
// sign may differ from that of the integer, which changes nothing: no chain is ever -0.
type superType struct {
	name    string
	head    int // bytes before the bits
	bits    int // bytes of the inputs of a sub-block of 16 outputs
	parts   int // sums of a sub-block: 2 where 16 inputs share a scale
	minima  bool
	weights func(t *tile, disp, part int) weights
	scales  func(s *super, column int, store storing)
	signed  bool // the scales
}

// A storing function gets the integers, in 32 bits, by which the sum of that number of 4 outputs is multiplied, or the sum of the
// activations if these are minima.
type storing func(sum int, minima bool, v V)

var superTypes = []superType{
	{name: "Q4_K", head: 64 + 3*wide, bits: 4 * wide, parts: 1, minima: true, weights: (*tile).nibbles, scales: (*super).q4KScales},
	{name: "Q5_K", head: 64 + 3*wide, bits: 5 * wide, parts: 1, minima: true, weights: (*tile).fiveBits, scales: (*super).q4KScales},
	{name: "Q6_K", head: 32 + 4*wide, bits: 6 * wide, parts: 2, weights: (*tile).sixBits, scales: (*super).q6KScales, signed: true},
	{name: "Q3_K", head: 32 + 3*wide, bits: 3 * wide, parts: 2, weights: (*tile).threeBits, scales: (*super).q3KScales, signed: true},
	{name: "Q2_K", head: 64 + 4*wide, bits: 2 * wide, parts: 2, minima: true, weights: (*tile).twoBits, scales: (*super).q2KScales},
	{name: "IQ4_XS", head: 64 + wide, bits: 4 * wide, parts: 1, weights: codebook("iq4", iq4Values), scales: (*super).iq4XSScales, signed: true},
}

// A super is a tile of such a type.
type super struct {
	*tile
	superType
	sub  R // the scales of a sub-block
	sums R // Q2_K: the sums of its activations
	row  R // and the bytes between those of rows
	ds   R // d and dmin of a half
}

// The frame: [16] d, [16] dmin; [8 sub-blocks] of [parts][16] scales, then [parts][16] minima; for Q2_K [8 rows][16] sums of 16
// activations.
const (
	superD      = frameTop
	superScales = superD + 2*wide
)

// step returns the bytes of the scales and minima of a sub-block.
func (s *super) step() int {
	if s.minima {
		return 2 * s.parts * wide
	}
	return s.parts * wide
}

func (s *super) superSums() int { return superScales + 8*s.step() }

// summed reports whether the tile reads the sums of 32 activations.
func (k superType) summed() bool { return k.minima && k.parts == 1 }

// superTile emits the product of n rows by a group of weights of a type.
func superTile(k superType, matrix bool) {
	s := &super{superType: k}
	frame := s.superSums()
	if k.minima && k.parts == 2 {
		frame += blockRows * wide
	}
	function(k.name, matrix, k.summed(), 8, frame, func(t *tile) {
		s.tile, s.sub, s.sums, s.row, s.ds = t, Reg(), Reg(), Reg(), Reg()
		Label("loop")
		s.begin()
		perRows(t.rows, t.fewest, blockRows, func(n int) {
			t.n = n
			Label(fmt.Sprintf("sub%d", n))
			Text("MOVD %v, %v", s.sub, t.factors)
			Text("ADD $%d, %v, %v", superD, t.frame, s.ds)
			t.eachHalf(half, s.half)
			Text("ADD $%d, %v, %v", k.bits, t.w, t.w)
			Text("ADD $%d, %v, %v", s.step(), s.sub, s.sub)
			Text("ADD $32, %v, %v", t.x, t.x)
			Text("ADD $4, %v, %v", t.d, t.d)
			if k.summed() {
				Text("ADD $4, %v, %v", t.sum, t.sum)
			}
			if s.sums16() {
				Text("ADD $8, %v, %v", s.sums, s.sums)
			}
			Text("SUBS $1, %v, %v", t.left, t.left)
			Text("BNE sub%d", n)
			if n > t.fewest {
				Text("B next")
			}
		})
		Label("next")
		Text("SUBS $1, %v, %v", t.nb, t.nb)
		Text("BNE loop")
	})
}

// sums16 reports whether the tile makes sums of 16 activations.
func (s *super) sums16() bool { return s.minima && s.parts == 2 }

// begin emits what begins a super-block: its scales as floats in the frame.
func (s *super) begin() {
	Text("MOVD $8, %v", s.left)
	Text("ADD $%d, %v, %v", superScales, s.frame, s.sub)
	floats := 1
	if s.minima {
		floats = 2
	}
	for i := range 4 * floats {
		v := Vec()
		LDRD(v, s.w, 8*i)
		FCVTL(H4, v, v)
		STRQ(v, s.frame, superD+16*i)
		Free(v)
	}
	for column := range 4 {
		s.scales(s, column, func(sum int, minima bool, v V) {
			at := superScales + sum/s.parts*s.step() + sum%s.parts*wide + 16*column
			if minima {
				at += s.parts * wide
			}
			SCVTF(S4, v, v)
			STRQ(v, s.frame, at)
		})
	}
	if s.sums16() {
		s.activations16()
	}
	Text("ADD $%d, %v, %v", s.head, s.w, s.w)
}

// eachByte emits the bytes of each lane, for the sums first to first+3.
func (s *super) eachByte(four V, first int, minima bool, store storing) {
	shift := USHR
	if s.signed {
		shift = SSHR
	}
	for i := range 4 {
		v := Vec()
		if i < 3 {
			SHL(S4, v, four, 24-8*i)
			shift(S4, v, v, 24)
		} else {
			shift(S4, v, four, 24)
		}
		store(first+i, minima, v)
		Free(v)
	}
}

// coded emits the load of n rows of bytes of scales of a column of 4 outputs.
func (s *super) coded(n, column int) []V {
	v := Vecs(n)
	for i := range v {
		at := s.head - wide*n
		LDRQ(v[i], s.w, at+wide*i+16*column)
	}
	return v
}

// q4KScales: three rows hold the file's 12 bytes.
func (s *super) q4KScales(column int, store storing) {
	coded, low6, low4 := s.coded(3, column), everywhere(0x3f), everywhere(0x0f)
	for i, minima := range []bool{false, true} {
		four := Vec()
		AND(B16, four, coded[i], low6)
		s.eachByte(four, 0, minima, store)
		if i == 0 {
			AND(B16, four, coded[2], low4)
		} else {
			USHR(B16, four, coded[2], 4)
		}
		USHR(B16, coded[i], coded[i], 6)
		SLI(B16, four, coded[i], 4)
		s.eachByte(four, 4, minima, store)
		Free(four)
	}
	Free(append(coded, low6, low4)...)
}

// q6KScales: whole bytes.
func (s *super) q6KScales(column int, store storing) {
	coded := s.coded(4, column)
	for i, four := range coded {
		s.eachByte(four, 4*i, false, store)
	}
	Free(coded...)
}

// q3KScales: nibbles in two rows, high bits in a third.
func (s *super) q3KScales(column int, store storing) {
	coded, low4, low6, number := s.coded(3, column), everywhere(0x0f), everywhere(0x3f), everywhere(32)
	for i := range 4 {
		four, high := Vec(), Vec()
		if i < 2 {
			AND(B16, four, coded[i], low4)
		} else {
			USHR(B16, four, coded[i-2], 4)
		}
		if i == 0 {
			SLI(B16, four, coded[2], 4)
		} else {
			USHR(B16, high, coded[2], 2*i)
			SLI(B16, four, high, 4)
		}
		AND(B16, four, four, low6)
		SUB(B16, four, four, number)
		s.eachByte(four, 4*i, false, store)
		Free(four, high)
	}
	Free(append(coded, low4, low6, number)...)
}

// q2KScales: scales in low nibbles, minima in high ones.
func (s *super) q2KScales(column int, store storing) {
	coded, low4 := s.coded(4, column), everywhere(0x0f)
	for i, both := range coded {
		four := Vec()
		AND(B16, four, both, low4)
		s.eachByte(four, 4*i, false, store)
		USHR(B16, four, both, 4)
		s.eachByte(four, 4*i, true, store)
		Free(four)
	}
	Free(append(coded, low4)...)
}

// iq4XSScales: two bytes of high bits of an output, then 8 nibbles in a lane.
func (s *super) iq4XSScales(column int, store storing) {
	high, low, number := Vec(), s.coded(1, column)[0], Vec()
	LDRD(high, s.w, 32+8*column)
	USHLL(H4, high, high, 0)
	MOVI(S4, number, 32, 0)
	for i := range 8 {
		v, low4 := Vec(), Vec()
		SHL(S4, v, high, 30-2*i)
		SHL(S4, low4, low, 28-4*i)
		SRI(S4, v, low4, 2)
		USHR(S4, v, v, 26)
		SUB(S4, v, v, number)
		store(i, false, v)
		Free(v, low4)
	}
	Free(high, low, number)
}

// half emits the product of a sub-block by half the outputs.
func (s *super) half() {
	s.start(0)
	for part := range 2 {
		s.add(s.weights(s.tile, 0, part), part)
		if s.parts == 2 && part == 0 {
			s.firstPart()
			s.start(0)
		}
	}
	Text("MOVD %v, %v", s.d, s.at)
	if s.summed() {
		Text("MOVD %v, %v", s.sum, s.at2)
	}
	if s.sums16() {
		Text("MOVD %v, %v", s.sums, s.at2)
		Text("ADD $4, %v, %v", s.sums, s.at3)
	}
	s.each(s.constants, s.values, s.finish)
	Text("ADD $%d, %v, %v", half, s.ds, s.ds)
}

// firstPart emits the sums of the first 16 inputs times their scales to the frame.
func (s *super) firstPart() {
	s.each(func(c int) []V { return s.load(s.scaleAt(0, c)) }, nil, func(u, c int, k, _ []V) {
		acc := s.acc[u][c]
		SCVTF(S4, acc, acc)
		FMUL(S4, acc, acc, k[0])
		STRQ(acc, s.frame, s.part(u, c))
	})
	for _, acc := range s.acc {
		Free(acc...)
	}
}

// scaleAt returns where the scales of a part of 4 outputs are, behind those of the half; minima are the parts from
// s.parts on.
func (s *super) scaleAt(part, c int) int { return wide*part + 16*c }

// load emits the loads of scales.
func (s *super) load(disps ...int) []V {
	v := make([]V, len(disps))
	for i, disp := range disps {
		v[i] = Vec()
		LDRQ(v[i], s.factors, disp)
	}
	return v
}

// constants emits d, the scales of the last part, dmin, and the minima of all parts.
func (s *super) constants(c int) []V {
	d := func(i int) V {
		v := Vec()
		LDRQ(v, s.ds, wide*i+16*c)
		return v
	}
	k := append([]V{d(0)}, s.load(s.scaleAt(s.parts-1, c))...)
	if s.minima {
		k = append(k, d(1))
		for part := range s.parts {
			k = append(k, s.load(s.scaleAt(s.parts+part, c))...)
		}
	}
	return k
}

// values emits the scale of the activations, and their sums for types with minima.
func (s *super) values(u int) []V {
	x := []V{s.value(s.at, s.stride, u)}
	switch {
	case s.summed():
		sum := s.value(s.at2, s.stride, u)
		SCVTF(S4, sum, sum)
		x = append(x, sum)
	case s.sums16():
		x = append(x, s.value(s.at2, s.row, u), s.value(s.at3, s.row, u))
	}
	return x
}

// finish emits chain = p * (d * dx) + chain, and with minima chain = -o * (dmin * dx) + chain.
func (s *super) finish(u, c int, k, x []V) {
	p, scale := s.acc[u][c], Vec()
	SCVTF(S4, p, p)
	if s.parts == 1 {
		FMUL(S4, p, p, k[1])
	} else {
		first := Vec()
		LDRQ(first, s.frame, s.part(u, c))
		FMLA(S4, first, p, k[1])
		Free(p)
		p, s.acc[u][c] = first, first
	}
	s.continued(u, c, func(chain V) {
		FMUL(S4, scale, k[0], x[0])
		FMLA(S4, chain, p, scale)
		if s.minima {
			FMUL(S4, p, k[3], x[1])
			if s.parts == 2 {
				FMLA(S4, p, k[4], x[2])
			}
			FMUL(S4, scale, k[2], x[0])
			FMLS(S4, chain, p, scale)
		}
	})
	Free(scale)
}

// activations16 emits the sums of 16 activations of all rows, as floats.
func (s *super) activations16() {
	Text("ADD $%d, %v, %v", s.superSums(), s.frame, s.sums)
	Text("MOVD $%d, %v", wide, s.row)
	Text("MOVD %v, %v", s.x, s.at)
	Text("MOVD %v, %v", s.sums, s.at2)
	Text("MOVD %v, %v", s.rows, s.at3)
	ones, sums, x := everywhere(1), Vecs(4), Vec()
	Label("sums")
	for i := range 4 {
		for j, v := range sums {
			LDRQ(x, s.at, 64*i+16*j)
			ZERO(v)
			SDOT(v, x, ones)
		}
		ADDP(S4, sums[0], sums[0], sums[1])
		ADDP(S4, sums[2], sums[2], sums[3])
		ADDP(S4, sums[0], sums[0], sums[2])
		SCVTF(S4, sums[0], sums[0])
		STRQ(sums[0], s.at2, 16*i)
	}
	Text("ADD %v, %v, %v", s.xStride, s.at, s.at)
	Text("ADD $%d, %v, %v", wide, s.at2, s.at2)
	Text("SUBS $1, %v, %v", s.at3, s.at3)
	Text("BNE sums")
	Free(append(sums, ones, x)...)
}
