package main

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

const cacheLine = 64

// An element is a type of values in a cache: its bytes, and how a register of them is loaded as floats.
type element struct {
	name  string
	width int
	load  func(m Mem, v reg.VecVirtual)
}

var elements = []element{
	{"F32", 4, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }},
	{"F16", 2, func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) }},
	{"I8", 1, func(m Mem, v reg.VecVirtual) {
		VPMOVSXBD(m, v)
		VCVTDQ2PS(v, v)
	}},
}

// floatTiles emits dst[r][16g+lane] += the sum over k of a[r][k] * b[k][g][lane], one multiply-add for
// each k in ascending order. Scores are this with queries as a and keys as b, weighted values are
// this with weights as a and values as b.
func floatTiles(s set) {
	counts := slices.Sorted(maps.Keys(s.tiles))
	slices.Reverse(counts)
	for _, e := range elements {
		name := "attend" + e.name + s.name
		Func(name, "func(rows int, dst *float32, dstStride int, a *float32, aStride int, b *byte, bStep, bGroup int, ahead *byte, pace, steps, groups int)",
			fmt.Sprintf("%s adds the products of some rows of a, one of %v, and all groups of b to dst:", name, counts),
			"dst[r][16*g+lane] takes FMA32(a[r][k], b[k][g][lane], dst[r][16*g+lane]) for k < steps, ascending.",
			"Rows of dst and a, steps and groups of b lie dstStride, aStride, bStep, bGroup bytes apart. steps",
			"is positive. Meanwhile as many bytes as b has, shifted right by pace, are prefetched from ahead on.")
		perRows(counts, func(n int, label string) {
			dst, b, groups, ahead := Int("dst"), Int("b"), Int("groups"), Int("ahead")
			for g := s.tiles[n]; g > 0; g /= 2 {
				this, next := fmt.Sprintf("%sgroups%d", label, g), fmt.Sprintf("%sgroups%d", label, g/2)
				Label(this)
				CMPQ(groups, U8(g))
				JLT(LabelRef(next))
				s.groups(n, g, this, dst, b, ahead, e)
				ADDQ(I32(4*lanes*g), dst)
				SUBQ(U8(g), groups)
				JMP(LabelRef(this))
			}
			Label(label + "groups0")
		})
	}
}

// groups emits the tile of n rows and g groups, and moves b behind them.
func (s set) groups(n, g int, label string, dst, b, ahead reg.GPVirtual, e element) {
	acc := s.loadTile(dst, n, g)
	a, bStep := rows(Int("a"), Int("aStride"), n), Int("bStep")
	p, stride := GP64(), Int("bGroup")
	MOVQ(b, p)
	groups := rows(p, stride, g)
	bytes := g * lanes * e.width // of a step
	// A slow pace prefetches the same lines more than once, which costs no more than to ask.
	times, paced := max(4, cacheLine/bytes), GP64()
	Load(Param("pace"), reg.RCX)
	MOVQ(U64(uint64(bytes*times)), paced)
	SHRQ(reg.CL, paced)
	step := func(i int) {
		for at := (bytes*i + cacheLine - 1) / cacheLine * cacheLine; at < bytes*(i+1); at += cacheLine {
			PREFETCHT0(Mem{Base: ahead, Disp: at})
		}
		v, w := make(Vecs, g*s.parts), make(Vecs, n)
		for r := range w {
			w[r] = Vector()
			VBROADCASTSS(a.at(r, 4*i), w[r])
			v.Each(func(j int) {
				if r == 0 {
					v[j] = Vector()
					e.load(groups.at(j/s.parts, j%s.parts*lanes/s.parts*e.width), v[j])
				}
				VFMADD231PS(v[j], w[r], acc[r][j])
			})
		}
		groups.advance(bStep)
	}
	unrolled(Int("steps"), label, times, step, func(k int) {
		a.advance(U8(4 * k))
		if k == times {
			ADDQ(paced, ahead)
		}
	})
	s.storeTile(acc, dst)
	for range g {
		ADDQ(Int("bGroup"), b)
	}
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

// loadTile loads the accumulators of n rows from a place in dst.
func (s set) loadTile(dst reg.GPVirtual, n, groups int) []Vecs {
	acc, from := make([]Vecs, n), rows(dst, Int("dstStride"), n)
	for r := range acc {
		for i := range groups * s.parts {
			v := Vector()
			VMOVUPS(from.at(r, 4*lanes/s.parts*i), v)
			acc[r] = append(acc[r], v)
		}
	}
	return acc
}

// storeTile stores them.
func (s set) storeTile(acc []Vecs, dst reg.GPVirtual) {
	to := rows(dst, Int("dstStride"), len(acc))
	for r := range acc {
		for i, v := range acc[r] {
			VMOVUPS(v, to.at(r, 4*lanes/s.parts*i))
		}
	}
}
