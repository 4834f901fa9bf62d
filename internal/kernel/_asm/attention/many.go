package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

const (
	chunk      = 64                        // steps, at most, of elements that are turned into floats
	turn       = 4                         // steps of a turn of a loop
	roomGroups = 4                         // groups of them
	roomGroup  = chunk*4*lanes + cacheLine // bytes of a group of floats; the line keeps groups out of the same sets of a cache
	scaledRow  = chunk * 4                 // bytes of a row of scaled weights
)

// many is what a function for many rows has in its frame: room for floats and for scaled rows, and the places and strides
// of what is multiplied.
type many struct {
	set
	room, scaled                 Mem
	a, aStride, b, bStep, bGroup Mem
	at, left                     Mem // the groups to come and their number
}

// manyRows emits the products of many rows: what depends on b alone is done once for all of them.
func manyRows(s set) {
	name := "attendMany" + s.name
	TEXT(name, 0, "func(dst *float32, dstStride int, a *float32, aStride, fives, fours, sixes int, b *byte, bStep, bGroup, width, steps, groups int, fresh bool, scales, ahead *byte, pace int)")
	Doc(fmt.Sprintf("%s adds the products of many rows of a by b to dst, as attendF32%s does, in tiles of 5, 4 and 6 rows, as many as", name, s.name),
		"fives, fours and sixes say, in this order. Elements of b are floats of 4 bytes or of 2, or integers of 1, as width says; of the",
		fmt.Sprintf("short ones there are at most %d steps and %d groups. Where fresh is set, dst is taken as zeros. Where scales is not nil, the", chunk, roomGroups),
		"elements of a take a factor each first, an F16 for each step; up to 30 bytes behind the last one are read. Meanwhile pace bytes,",
		fmt.Sprintf("up to 128, are prefetched from ahead on for each tile of up to %d groups and four of its steps.", s.many))
	Pragma("noescape")
	word := func() Mem { return AllocLocal(8) }
	m := many{s, AllocLocal(roomGroups*roomGroup + cacheLine), AllocLocal(6*scaledRow + cacheLine), word(), word(), word(), word(), word(), word(), word()}
	m.widen()
	ahead := Int("ahead")
	for _, n := range []int{5, 4, 6} {
		m.tiles(n, map[int]string{5: "fives", 4: "fours", 6: "sixes"}[n], ahead)
	}
	End()
}

// aligned returns the address of the first whole line of cache within m.
func aligned(m Mem) reg.GPVirtual {
	p := GP64()
	LEAQ(m, p)
	ADDQ(U8(cacheLine-1), p)
	ANDQ(I8(-cacheLine), p)
	return p
}

// setB stores what is multiplied.
func (m many) setB(b, bStep, bGroup reg.GPVirtual) {
	MOVQ(b, m.b)
	MOVQ(bStep, m.bStep)
	MOVQ(bGroup, m.bGroup)
}

// widen emits the conversion of b to floats, group beside group, unless its elements are floats.
func (m many) widen() {
	b, bStep, bGroup := Int("b"), Int("bStep"), Int("bGroup")
	m.setB(b, bStep, bGroup)
	CMPQ(address("width"), U8(4))
	JE(LabelRef("products"))
	room := aligned(m.room)
	for _, e := range elements[1:] {
		to, from, left, other := GP64(), GP64(), Int("groups"), "widenNot"+e.name
		CMPQ(address("width"), U8(e.width))
		JNE(LabelRef(other))
		MOVQ(room, to)
		MOVQ(b, from)
		m.eachGroups("widen"+e.name, left, func(g int, label string) { m.widenGroups(e, g, label, from, to, bStep, bGroup) })
		JMP(LabelRef("widened"))
		Label(other)
	}
	Label("widened")
	MOVQ(I32(4*lanes), bStep)
	MOVQ(I32(roomGroup), bGroup)
	m.setB(room, bStep, bGroup)
	Label("products")
}

// eachGroups emits a loop over the groups that are left, as many at once as a tile can have.
func (m many) eachGroups(label string, left Op, body func(g int, label string)) {
	for g := m.many; g > 0; g /= 2 {
		this := fmt.Sprintf("%sgroups%d", label, g)
		Label(this)
		CMPQ(left, U8(g))
		JLT(LabelRef(this + "less"))
		body(g, this)
		SUBQ(U8(g), left)
		JMP(LabelRef(this))
		Label(this + "less")
	}
}

// widenGroups emits the conversion of g groups and moves both pointers behind them.
func (m many) widenGroups(e element, g int, label string, from, to, bStep, bGroup reg.GPVirtual) {
	p, q, steps := GP64(), GP64(), Int("steps")
	MOVQ(from, p)
	MOVQ(to, q)
	groups := rows(p, bGroup, g)
	Label(label + "step")
	for i := range g {
		for part := range m.parts {
			v, at := Vector(), part*lanes/m.parts
			e.load(groups.at(i, at*e.width), v)
			VMOVUPS(v, Mem{Base: q, Disp: i*roomGroup + 4*at})
		}
	}
	ADDQ(bStep, p)
	ADDQ(U8(4*lanes), q)
	DECQ(steps)
	JNZ(LabelRef(label + "step"))
	for range g {
		ADDQ(bGroup, from)
	}
	ADDQ(I32(g*roomGroup), to)
}

// tiles emits the tiles of n rows, as many as the parameter count says.
func (m many) tiles(n int, count string, ahead reg.GPVirtual) {
	label := fmt.Sprintf("rows%d", n)
	Label(label)
	CMPQ(address(count), U8(0))
	JE(LabelRef(label + "end"))
	m.scaleRows(n, label)
	dst, b, left := Int("dst"), GP64(), Int("groups")
	MOVQ(m.b, b)
	MOVQ(b, m.at)
	MOVQ(left, m.left)
	m.eachGroups(label, m.left, func(g int, label string) {
		m.tile(n, g, label, dst, ahead)
		ADDQ(I32(4*lanes*g), dst)
	})
	for _, p := range [][2]string{{"dst", "dstStride"}, {"a", "aStride"}} {
		bytes := Int(p[1])
		IMUL3Q(U8(n), bytes, bytes)
		ADDQ(bytes, address(p[0]))
	}
	DECQ(address(count))
	JMP(LabelRef(label))
	Label(label + "end")
}

// scaleRows emits the products of n rows of a by the scales, where there are any, and chooses what the tile reads.
func (m many) scaleRows(n int, label string) {
	a, stride, scales := Int("a"), Int("aStride"), Int("scales")
	MOVQ(a, m.a)
	MOVQ(stride, m.aStride)
	TESTQ(scales, scales)
	JZ(LabelRef(label + "scaled"))
	from, steps, left, to := rows(a, stride, n), Int("steps"), Vector(), aligned(m.scaled)
	MOVQ(to, m.a)
	MOVQ(U32(scaledRow), m.aStride)
	VMOVD(steps.As32(), left.AsX())
	VPBROADCASTD(left.AsX(), left)
	numbers, width := laneNumbers(), lanes/m.parts
	Label(label + "scale")
	d := Vector()
	VCVTPH2PS(Mem{Base: scales}, d)
	multiply := m.scaleVector(numbers, left, d)
	for r := range n {
		multiply(from.at(r, 0), Mem{Base: to, Disp: scaledRow * r})
	}
	from.advance(U8(4 * width))
	ADDQ(U8(4*width), to)
	ADDQ(U8(2*width), scales)
	VPSUBD(Bits(uint32(width)), left, left)
	SUBQ(U8(width), steps)
	JG(LabelRef(label + "scale"))
	Label(label + "scaled")
}

// tile emits the tile of n rows and g groups.
func (m many) tile(n, g int, label string, dst, ahead reg.GPVirtual) {
	acc := m.freshTile(dst, n, g, label)
	a0, stride, bStep, bGroup, p := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(m.a, a0)
	MOVQ(m.aStride, stride)
	MOVQ(m.bStep, bStep)
	MOVQ(m.bGroup, bGroup)
	MOVQ(m.at, p)
	a, groups, pace := rows(a0, stride, n), rows(p, bGroup, g), Int("pace")
	step := func(i int) {
		if i < 2 {
			PREFETCHT0(Mem{Base: ahead, Disp: cacheLine * i})
		}
		v := make(Vecs, g*m.parts)
		for r := range n {
			w := Vector()
			VBROADCASTSS(a.at(r, 4*i), w)
			v.Each(func(j int) {
				if r == 0 {
					v[j] = Vector()
					VMOVUPS(groups.at(j/m.parts, j%m.parts*4*lanes/m.parts), v[j])
				}
				VFMADD231PS(v[j], w, acc[r][j])
			})
		}
		groups.advance(bStep)
	}
	for range g {
		ADDQ(bGroup, m.at)
	}
	unrolled(Int("steps"), label, turn, step, func(k int) {
		a.advance(U8(4 * k))
		if k == turn {
			ADDQ(pace, ahead)
		}
	})
	m.storeTile(acc, dst)
}

// freshTile loads the accumulators of n rows, or clears them.
func (m many) freshTile(dst reg.GPVirtual, n, g int, label string) []Vecs {
	fresh := GP64()
	Load(Param("fresh"), fresh.As8())
	TESTB(fresh.As8(), fresh.As8())
	JNZ(LabelRef(label + "zeros"))
	acc := m.loadTile(dst, n, g)
	JMP(LabelRef(label + "begin"))
	Label(label + "zeros")
	for r := range acc {
		for _, v := range acc[r] {
			VXORPS(v, v, v)
		}
	}
	Label(label + "begin")
	return acc
}
