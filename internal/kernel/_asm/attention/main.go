// Command attention generates the AVX2 kernels of attention: tiles of scores and of weighted values
// over each cache type, and the softmax of a block.
package main

import (
	"fmt"
	"math"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

var negInf = math.Inf(-1)

func main() {
	ConstraintExpr("amd64,!purego")
	floatTile("attendF32AVX2", func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) })
	floatTile("attendF16AVX2", func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) })
	scoresQ8()
	weighQ8()
	softmax()
	capScores()
	merge()
	Generate()
}

// A matrix is a stack of rows, of which any of eight is one operand: through a pointer to row 0, one
// to row 3, and registers that hold one and three strides. Those that n rows do not need are nil.
type matrix struct{ row0, row3, stride, stride3 reg.GPVirtual }

// rows returns the matrix of n rows from a pointer; stride is in bytes.
func rows(row0, stride reg.GPVirtual, n int) matrix {
	m := matrix{row0: row0, stride: stride}
	if n > 3 {
		m.row3, m.stride3 = GP64(), GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, m.stride3)
		LEAQ(Mem{Base: row0, Index: m.stride3, Scale: 1}, m.row3)
	}
	return m
}

func (m matrix) at(row, disp int) Mem {
	switch row {
	case 0:
		return Mem{Base: m.row0, Disp: disp}
	case 1, 2:
		return Mem{Base: m.row0, Disp: disp, Index: m.stride, Scale: uint8(row)}
	case 3:
		return Mem{Base: m.row3, Disp: disp}
	case 6:
		return Mem{Base: m.row3, Disp: disp, Index: m.stride3, Scale: 1}
	default: // 4, 5, 7
		return Mem{Base: m.row3, Disp: disp, Index: m.stride, Scale: uint8(row - 3)}
	}
}

// advance moves all rows by a number of bytes.
func (m matrix) advance(bytes Op) {
	ADDQ(bytes, m.row0)
	if m.row3 != nil {
		ADDQ(bytes, m.row3)
	}
}

// perRows emits one body for each number of rows a tile can have, 1, 2, 4 up to most, and the choice
// by the parameter rows. A body gets a prefix for its labels and falls out of its end.
func perRows(most int, body func(n int, label string)) {
	n := Int("rows")
	for r := most; r > 0; r /= 2 {
		label := fmt.Sprintf("rows%d", r)
		if r > 1 {
			CMPQ(n, U8(r))
			JNE(LabelRef(label + "not"))
		}
		body(r, label)
		End()
		Label(label + "not")
	}
}

// floatTile emits dst[r][g*8+lane] += the sum over k of a[r][k] * b[k][g][lane], one multiply-add for
// each k in ascending order. Scores are this with queries as a and keys as b, weighted values are
// this with weights as a and values as b.
func floatTile(name string, load func(m Mem, v reg.VecVirtual)) {
	Func(name, "func(rows int, dst *float32, dstStride int, a *float32, aStride int, b *byte, bStep, bGroup, steps, groups int)",
		name+" adds the products of 1, 2, 4 or 8 rows of a and all groups of b to dst:",
		"dst[r][8*g+lane] takes FMA32(a[r][k], b[k][g][lane], dst[r][8*g+lane]) for k < steps, ascending.",
		"Rows of dst and a, steps and groups of b lie dstStride, aStride, bStep, bGroup bytes apart. steps",
		"is positive.")
	perRows(8, func(n int, label string) {
		dst, b, groups, bStep := Int("dst"), Int("b"), Int("groups"), Int("bStep")
		for g := 8 / n; g > 0; g /= 2 {
			this, next := fmt.Sprintf("%sgroups%d", label, g), fmt.Sprintf("%sgroups%d", label, g/2)
			Label(this)
			CMPQ(groups, U8(g))
			JLT(LabelRef(next))
			floatGroups(n, g, this, dst, b, bStep, load)
			ADDQ(I32(32*g), dst)
			SUBQ(U8(g), groups)
			JMP(LabelRef(this))
		}
		Label(label + "groups0")
	})
}

// floatGroups emits the tile of n rows and g groups, and moves b behind them.
func floatGroups(n, g int, label string, dst, b, bStep reg.GPVirtual, load func(m Mem, v reg.VecVirtual)) {
	acc := loadTile(dst, n, g)
	a := rows(Int("a"), Int("aStride"), n)
	p := GP64()
	MOVQ(b, p)
	groups := rows(p, Int("bGroup"), g)
	step := func(disp int) {
		v := make([]reg.VecVirtual, g)
		w := make([]reg.VecVirtual, n)
		for r := range w {
			w[r] = YMM()
			VBROADCASTSS(a.at(r, disp), w[r])
			for i := range v {
				if r == 0 {
					v[i] = YMM()
					load(groups.at(i, 0), v[i])
				}
				VFMADD231PS(v[i], w[r], acc[r][i])
			}
		}
		groups.advance(bStep)
	}
	unrolled(Int("steps"), label, 4, step, func(k int) { a.advance(U8(4 * k)) })
	storeTile(acc, dst)
	behind := Int("bGroup")
	SHLQ(U8(bits.TrailingZeros(uint(g))), behind)
	ADDQ(behind, b)
}

// unrolled emits a loop of n steps, several at a time. A step gets the displacement of its float, and
// advance the number of steps to move by.
func unrolled(n reg.GPVirtual, label string, times int, step, advance func(int)) {
	SUBQ(U8(times), n)
	JLT(LabelRef(label + "rest"))
	Label(label + "steps")
	for i := range times {
		step(4 * i)
	}
	advance(times)
	SUBQ(U8(times), n)
	JGE(LabelRef(label + "steps"))
	Label(label + "rest")
	ADDQ(U8(times), n)
	JZ(LabelRef(label + "end"))
	Label(label + "step")
	step(0)
	advance(1)
	DECQ(n)
	JNZ(LabelRef(label + "step"))
	Label(label + "end")
}

// scoresQ8 emits the scores of queries for groups of eight keys.
func scoresQ8() {
	Func("scoresQ8AVX2", "func(rows int, dst *float32, q *int8, d *float32, keys, scales *byte, size, groups int)",
		"scoresQ8AVX2 writes the scores of 1, 2 or 4 queries, rows of q and d, for groups of eight keys, to",
		"rows of 64 floats. groups is positive.")
	perRows(4, func(n int, label string) {
		dst, keys, scales, groups, size := Int("dst"), Int("keys"), Int("scales"), Int("groups"), Int("size")
		scaleRow := GP64()
		MOVQ(size, scaleRow)
		SHRQ(U8(3), scaleRow)
		Label(label + "group")
		acc := make([]reg.VecVirtual, n)
		for r := range acc {
			acc[r] = YMM()
			VXORPS(acc[r], acc[r], acc[r])
		}
		q, d, blocks := rows(Int("q"), size, n), rows(Int("d"), scaleRow, n), GP64()
		MOVQ(size, blocks)
		SHRQ(U8(5), blocks)
		Label(label + "block")
		scoreBlock(acc, keys, scales, q, d)
		ADDQ(I32(256), keys)
		ADDQ(U8(16), scales)
		q.advance(U8(32))
		d.advance(U8(4))
		DECQ(blocks)
		JNZ(LabelRef(label + "block"))
		for r, v := range acc {
			VMOVUPS(v, Mem{Base: dst, Disp: 256 * r})
		}
		ADDQ(U8(32), dst)
		DECQ(groups)
		JNZ(LabelRef(label + "group"))
	})
}

// scoreBlock adds the products of queries and eight keys over a block to the accumulators.
func scoreBlock(acc []reg.VecVirtual, keys, scales reg.Register, q, d matrix) {
	sum, dk := dotBlock(keys, q, len(acc)), YMM()
	VCVTPH2PS(Mem{Base: scales}, dk)
	for r := range acc {
		s := YMM()
		VBROADCASTSS(d.at(r, 0), s)
		VMULPS(dk, s, s)
		VCVTDQ2PS(sum[r], sum[r])
		VFMADD231PS(s, sum[r], acc[r])
	}
}

// dotBlock returns the integer products of n queries and eight keys over 32 elements. The unsigned by
// signed multiply-add gets |k| and q with k's sign; no sum of two leaves 16 bits, as both operands
// are within 127.
func dotBlock(keys reg.Register, q matrix, n int) []reg.VecVirtual {
	sum, ones := make([]reg.VecVirtual, n), YMM()
	VMOVUPS(Bits(0x00010001), ones)
	for e := range 8 {
		k, abs := YMM(), YMM()
		VMOVDQU(Mem{Base: keys, Disp: 32 * e}, k)
		VPABSB(k, abs)
		for r := range n {
			v := YMM()
			VPBROADCASTD(q.at(r, 4*e), v)
			VPSIGNB(k, v, v)
			VPMADDUBSW(v, abs, v)
			VPMADDWD(ones, v, v)
			if e == 0 {
				sum[r] = v
			} else {
				VPADDD(v, sum[r], sum[r])
			}
		}
	}
	return sum
}

// weighQ8 emits the weighted values of queries. A tile has no more than 32 elements, which share
// their scales.
func weighQ8() {
	Func("weighQ8AVX2", "func(rows int, dst *float32, dstStride int, p *float32, values, scales *byte, size, slots int)",
		"weighQ8AVX2 adds slots of values, weighted by 1, 2 or 4 rows of 64 weights, to rows of dst that lie",
		"dstStride bytes apart. slots is positive.")
	perRows(4, func(n int, label string) {
		vectors := min(4, 8/n)
		dst, size, e, scaleRow := Int("dst"), Int("size"), GP64(), GP64()
		MOVQ(size, scaleRow)
		SHRQ(U8(4), scaleRow)
		XORQ(e, e)
		Label(label + "tile")
		acc := loadTile(dst, n, vectors)
		values, p, slots, scales := Int("values"), Int("p"), Int("slots"), GP64()
		ADDQ(e, values)
		MOVQ(e, scales) // two bytes for each 32 elements
		SHRQ(U8(5), scales)
		SHLQ(U8(1), scales)
		ADDQ(Int("scales"), scales)
		Label(label + "slot")
		weighSlot(acc, values, p, scales)
		ADDQ(size, values)
		ADDQ(scaleRow, scales)
		ADDQ(U8(4), p)
		DECQ(slots)
		JNZ(LabelRef(label + "slot"))
		storeTile(acc, dst)
		ADDQ(I32(32*vectors), dst)
		ADDQ(U8(8*vectors), e)
		CMPQ(e, size)
		JLT(LabelRef(label + "tile"))
	})
}

// loadTile loads the accumulators of n rows from a place in dst.
func loadTile(dst reg.GPVirtual, n, vectors int) [][]reg.VecVirtual {
	acc, from := make([][]reg.VecVirtual, n), rows(dst, Int("dstStride"), n)
	for r := range acc {
		for i := range vectors {
			v := YMM()
			VMOVUPS(from.at(r, 32*i), v)
			acc[r] = append(acc[r], v)
		}
	}
	return acc
}

// storeTile stores them.
func storeTile(acc [][]reg.VecVirtual, dst reg.GPVirtual) {
	to := rows(dst, Int("dstStride"), len(acc))
	for r := range acc {
		for i, v := range acc[r] {
			VMOVUPS(v, to.at(r, 32*i))
		}
	}
}

// weighSlot adds one slot's values to the accumulators.
func weighSlot(acc [][]reg.VecVirtual, values, p, scales reg.Register) {
	d, w := YMM(), make([]reg.VecVirtual, len(acc))
	VPBROADCASTW(Mem{Base: scales}, d.AsX())
	VCVTPH2PS(d.AsX(), d)
	for r := range w {
		w[r] = YMM()
		VBROADCASTSS(Mem{Base: p, Disp: 256 * r}, w[r])
		VMULPS(d, w[r], w[r])
	}
	for i := range acc[0] {
		v := YMM()
		VPMOVSXBD(Mem{Base: values, Disp: 8 * i}, v)
		VCVTDQ2PS(v, v)
		for r := range acc {
			VFMADD231PS(v, w[r], acc[r][i])
		}
	}
}

func softmax() {
	Func("softmaxAVX2", "func(s *[64]float32, scale float32) (m, sum float32)", "softmaxAVX2 is softmaxGo.")
	block, scale := Int("s"), Broadcast("scale")
	var s [8]reg.VecVirtual
	var max [4]reg.VecVirtual
	for i := range s {
		s[i] = YMM()
		VMULPS(Mem{Base: block, Disp: 32 * i}, scale, s[i])
		if i < 4 {
			max[i] = YMM()
			VMAXPS(Float(negInf), s[i], max[i])
		} else {
			Max(s[i], max[i-4])
		}
	}
	low, m := Fold(max, Max), YMM()
	Result(low, 0)
	VBROADCASTSS(low, m)
	var sum [4]reg.VecVirtual
	for i := range sum {
		for _, j := range []int{i, i + 4} {
			VSUBPS(m, s[j], s[j])
			s[j] = ExpNegative(s[j])
			VMOVUPS(s[j], Mem{Base: block, Disp: 32 * j})
		}
		sum[i] = s[i]
		VADDPS(s[i+4], sum[i], sum[i])
	}
	Result(Fold(sum, Add), 1)
	End()
}

func capScores() {
	Func("capScoresAVX2", "func(s *[64]float32, scale, softcap float32)", "capScoresAVX2 is capScoresGo.")
	s, scale, softcap, none, n := Int("s"), Broadcast("scale"), Broadcast("softcap"), YMM(), GP64()
	VMOVUPS(Float(negInf), none)
	MOVQ(U64(8), n)
	Label("loop")
	x, invisible := YMM(), YMM()
	VMULPS(Mem{Base: s}, scale, x)
	VCMPPS(Equal, none, x, invisible)
	VDIVPS(softcap, x, x)
	x = Tanh(x)
	VMULPS(softcap, x, x)
	VBLENDVPS(invisible, none, x, x)
	VMOVUPS(x, Mem{Base: s})
	ADDQ(U8(32), s)
	DECQ(n)
	JNZ(LabelRef("loop"))
	End()
}

func merge() {
	Func("mergeAVX2", "func(o []float32, a, b float32, ob []float32)",
		"mergeAVX2 is mergeGo, for the elements up to the last multiple of 8 of ob.")
	o, ob, a, b := Base("o"), Base("ob"), Broadcast("a"), Broadcast("b")
	Each("ob", func(i reg.GPVirtual) {
		v := YMM()
		VMULPS(At(o, i), a, v)
		VFMADD231PS(At(ob, i), b, v)
		VMOVUPS(v, At(o, i))
	})
	End()
}
