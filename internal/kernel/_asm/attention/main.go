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

// keysAhead is how many bytes prefetching runs ahead in Q8_0 keys, which are read from first to last.
const keysAhead = 2048

var negInf = math.Inf(-1)

func main() {
	ConstraintExpr("amd64,!purego")
	floatTile("attendF32AVX2", func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) })
	floatTile("attendF16AVX2", func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) })
	floatTile("attendI8AVX2", func(m Mem, v reg.VecVirtual) {
		VPMOVSXBD(m, v)
		VCVTDQ2PS(v, v)
	})
	scoresQ8()
	scaleWeights()
	softmax()
	capScores()
	merge()
	expPair()
	halves()
	roundBlock()
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
	Func(name, "func(rows int, dst *float32, dstStride int, a *float32, aStride int, b *byte, bStep, bGroup, ahead, steps, groups int)",
		name+" adds the products of 1, 2, 4 or 8 rows of a and all groups of b to dst:",
		"dst[r][8*g+lane] takes FMA32(a[r][k], b[k][g][lane], dst[r][8*g+lane]) for k < steps, ascending.",
		"Rows of dst and a, steps and groups of b lie dstStride, aStride, bStep, bGroup bytes apart. steps",
		"is positive. Each step prefetches from one group what lies ahead bytes behind it.")
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
	p, stride := GP64(), Int("bGroup")
	MOVQ(b, p)
	groups := rows(p, stride, g)
	q := Int("ahead")
	ADDQ(p, q)
	ahead := rows(q, stride, g)
	step := func(i int) {
		PREFETCHT0(ahead.at(i%g, 0))
		w := make([]reg.VecVirtual, n)
		v := make([]reg.VecVirtual, g)
		for r := range w {
			w[r] = YMM()
			VBROADCASTSS(a.at(r, 4*i), w[r])
			for j := range v {
				if r == 0 {
					v[j] = YMM()
					load(groups.at(j, 0), v[j])
				}
				VFMADD231PS(v[j], w[r], acc[r][j])
			}
		}
		groups.advance(bStep)
		ahead.advance(bStep)
	}
	unrolled(Int("steps"), label, max(4, g), step, func(k int) { a.advance(U8(4 * k)) })
	storeTile(acc, dst)
	behind := Int("bGroup")
	SHLQ(U8(bits.TrailingZeros(uint(g))), behind)
	ADDQ(behind, b)
}

// unrolled emits a loop of n steps, several at a time. A step gets its place among them, and advance
// the number of steps to move by.
func unrolled(n reg.GPVirtual, label string, times int, step, advance func(int)) {
	SUBQ(U8(times), n)
	JLT(LabelRef(label + "rest"))
	Label(label + "steps")
	for i := range times {
		step(i)
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
		if e%2 == 0 {
			PREFETCHT0(Mem{Base: keys, Disp: 32*e + keysAhead})
		}
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

func scaleWeights() {
	Func("scaleWeightsAVX2", "func(rows int, w *[512]float32, p *float32, scales *byte, slots int)",
		"scaleWeightsAVX2 multiplies the first slots of up to 8 rows of 64 weights by the slots' F16 scales.",
		"It reads up to 14 bytes behind the last scale.")
	w, p, scales, slots, lanes, left := Int("w"), Int("p"), Int("scales"), Int("slots"), YMM(), YMM()
	VMOVUPS(Words("lanes", [8]uint32{0, 1, 2, 3, 4, 5, 6, 7}), lanes)
	VMOVD(slots.As32(), left.AsX())
	VPBROADCASTD(left.AsX(), left)
	Label("slots")
	d, mask := YMM(), YMM()
	VCVTPH2PS(Mem{Base: scales}, d)
	VPCMPGTD(lanes, left, mask)
	rows, at := Int("rows"), GP64()
	XORQ(at, at)
	Label("row")
	v := YMM()
	VMASKMOVPS(At(p, at), mask, v)
	VMULPS(d, v, v)
	VMOVUPS(v, At(w, at))
	ADDQ(I32(256), at)
	DECQ(rows)
	JNZ(LabelRef("row"))
	ADDQ(U8(32), p)
	ADDQ(U8(32), w)
	ADDQ(U8(16), scales)
	VPSUBD(Bits(8), left, left)
	SUBQ(U8(8), slots)
	JG(LabelRef("slots"))
	End()
}

func expPair() {
	Func("expPairAVX2", "func(x, y float32) (a, b float32)", "expPairAVX2 is expPairGo.")
	v, w := Broadcast("x"), Broadcast("y")
	VUNPCKLPS(w, v, v)
	Exp(Vecs{v}, false)
	Result(v.AsX(), 0)
	VPSRLQ(U8(32), v.AsX(), v.AsX())
	Result(v.AsX(), 1)
	End()
}

func halves() {
	Func("halvesAVX2", "func(dst []byte, x []float32)",
		"halvesAVX2 rounds x to halves, the elements up to the last multiple of 8.")
	dst, x, to := Base("dst"), Base("x"), GP64()
	MOVQ(dst, to)
	Each("x", func(i reg.GPVirtual) {
		v := YMM()
		VMOVUPS(At(x, i), v)
		VCVTPS2PH(U8(0), v, Mem{Base: to})
		ADDQ(U8(16), to)
	})
	End()
}

func roundBlock() {
	Func("roundBlockAVX2", "func(dst *[32]byte, x *[32]float32, id float32)", "roundBlockAVX2 is roundBlockGo.")
	dst, x, id := Int("dst"), Int("x"), Broadcast("id")
	v := Vecs{YMM(), YMM(), YMM(), YMM()}
	v.Each(func(i int) { VMULPS(Mem{Base: x, Disp: 32 * i}, id, v[i]) })
	v.Each(func(i int) { VCVTPS2DQ(v[i], v[i]) })
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	VPMAXSB(Bits(0x81818181), v[0], v[0])
	VMOVUPS(Words("order", [8]uint32{0, 4, 1, 5, 2, 6, 3, 7}), v[1])
	VPERMD(v[0], v[1], v[0])
	VMOVUPS(v[0], Mem{Base: dst})
	End()
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
		pair := Vecs{s[i], s[i+4]}
		pair.Each(func(j int) { VSUBPS(m, pair[j], pair[j]) })
		Exp(pair, true)
		pair.Each(func(j int) { VMOVUPS(pair[j], Mem{Base: block, Disp: 32 * (i + 4*j)}) })
		sum[i] = pair[0]
		VADDPS(pair[1], sum[i], sum[i])
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
	x = Tanh(Vecs{x})[0]
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
