package main

import (
	"fmt"
	"maps"
	"slices"

	. "grove/internal/kernel/_asm/arm64"
	. "grove/internal/kernel/_asm/neon"
)

// An element is a type of values in a cache: its bytes, and how eight of them are loaded as floats into two registers.
type element struct {
	name  string
	width int
	load  func(v, w V, base R, disp int)
}

var elements = []element{
	{"F32", 4, LDPQ},
	{"F16", 2, func(v, w V, base R, disp int) {
		LDRQ(w, base, disp)
		FCVTL(H4, v, w)
		FCVTL(H8, w, w)
	}},
	{"I8", 1, func(v, w V, base R, disp int) {
		LDRD(w, base, disp)
		SSHLL(B8, w, w, 0)
		SSHLL(H4, v, w, 0)
		SSHLL(H8, w, w, 0)
		SCVTF(S4, v, v)
		SCVTF(S4, w, w)
	}},
}

// tiles are the rows of a float tile, and how many groups it has beside each other. A register of a row holds the weights of four
// steps; at least two are left for the values of a step.
var tiles = map[int]int{1: 4, 2: 2, 4: 1, 6: 1}

// floatTiles emits dst[r][16g+lane] += the sum over k of a[r][k] * b[k][g][lane], one multiply-add for each k in ascending
// order. Scores are this with queries as a and keys as b, weighted values are this with weights as a and values as b.
func floatTiles() {
	counts := slices.Sorted(maps.Keys(tiles))
	slices.Reverse(counts)
	for _, e := range elements {
		name := "attend" + e.name + "NEON"
		Func(name, "func(rows int, dst *float32, dstStride int, a *float32, aStride int, b *byte, bStep, bGroup int, ahead *byte, pace, steps, groups int)",
			fmt.Sprintf("%s adds the products of some rows of a, one of %v, and all groups of b to dst:", name, counts),
			"dst[r][16*g+lane] takes FMA32(a[r][k], b[k][g][lane], dst[r][16*g+lane]) for k < steps, ascending.",
			"Rows of dst and a, steps and groups of b lie dstStride, aStride, bStep, bGroup bytes apart. steps",
			"is positive. Meanwhile as many bytes as b has, shifted right by pace, are prefetched from ahead on.")
		perRows(counts, func(n int, label string) {
			t := tile{element: e, dst: Arg("dst"), b: Arg("b"), ahead: Arg("ahead"), dstStride: Arg("dstStride")}
			t.a = rowPointers(Arg("a"), Arg("aStride"), n)
			groups := Arg("groups")
			for g := tiles[n]; g > 0; g /= 2 {
				this, next := fmt.Sprintf("%sgroups%d", label, g), fmt.Sprintf("%sgroups%d", label, g/2)
				Label(this)
				Text("CMP $%d, %v", g, groups)
				Text("BLT %s", next)
				t.groups(g, this)
				Advance(4*lanes*g, t.dst)
				Text("SUB $%d, %v", g, groups)
				Text("B %s", this)
			}
			Label(label + "groups0")
		})
	}
}

// A tile is the state of a tile's loops: the place of its accumulators, the rows of a, and the first of its groups of b.
type tile struct {
	element
	dst, dstStride R
	a              []R
	b, ahead       R
}

// groups emits the tile of g groups, and moves b behind them.
func (t tile) groups(g int, label string) {
	acc := make([][]V, len(t.a))
	for r := range acc {
		acc[r] = Vecs(parts * g)
	}
	t.eachRow(func(r int, dst R) { Load(acc[r], dst, 0) })
	w, free := Vecs(len(t.a)), Vecs(min(8, 32-len(t.a)*(parts*g+1))&^1)
	bStep, bGroup, steps, index, paced, shift := Arg("bStep"), Arg("bGroup"), Arg("steps"), Reg(), Reg(), Arg("pace")
	bytes := g * lanes * t.width // of a step
	Text("MOVD $%d, %v", 4*bytes, paced)
	Text("LSR %v, %v", shift, paced)
	Text("MOVD $0, %v", index)
	p := make([]R, g)
	for i := range p {
		p[i] = Reg()
		Text("MOVD %v, %v", t.b, p[i])
		Text("ADD %v, %v", bGroup, t.b)
	}
	step := func(i int) {
		for at := (bytes*i + cacheLine - 1) / cacheLine * cacheLine; at < bytes*(i+1); at += cacheLine {
			prefetch(t.ahead, at)
		}
		for j := 0; j < parts*g; j += 2 {
			v := free[(i*parts*g+j)%len(free):][:2]
			t.load(v[0], v[1], p[j/parts], j%parts*4*t.width)
			for r := range acc {
				FMLAElem(S4, acc[r][j], v[0], w[r], i)
				FMLAElem(S4, acc[r][j+1], v[1], w[r], i)
			}
		}
		for _, p := range p {
			Text("ADD %v, %v", bStep, p)
		}
	}
	weights := func(load func(v V, base, index R)) {
		for r, a := range t.a {
			load(w[r], a, index)
		}
	}
	byFours(steps, label, func() {
		weights(LDRQX)
		for i := range 4 {
			step(i)
		}
		Advance(16, index)
		Text("ADD %v, %v", paced, t.ahead)
	}, func() {
		weights(LDRSX)
		step(0)
		Advance(4, index)
	})
	t.eachRow(func(r int, dst R) { Store(acc[r], dst, 0) })
	for r := range acc {
		Free(acc[r]...)
	}
	Free(append(w, free...)...)
	Free(append(p, bStep, bGroup, steps, index, paced, shift)...)
}

// eachRow emits a body for the place of each row of dst.
func (t tile) eachRow(body func(r int, dst R)) {
	body(0, t.dst)
	p := Reg()
	for r := 1; r < len(t.a); r++ {
		if r == 1 {
			Text("ADD %v, %v, %v", t.dstStride, t.dst, p)
		} else {
			Text("ADD %v, %v", t.dstStride, p)
		}
		body(r, p)
	}
	Free(p)
}

// byFours emits a loop of n steps, n being positive: four at a time, and the rest one by one.
func byFours(n R, label string, four, one func()) {
	Text("SUBS $4, %v, %v", n, n)
	Text("BLT %srest", label)
	Label(label + "steps")
	four()
	Text("SUBS $4, %v, %v", n, n)
	Text("BGE %ssteps", label)
	Label(label + "rest")
	Text("ADDS $4, %v, %v", n, n)
	Text("BEQ %send", label)
	Loop(label+"step", n, one)
	Label(label + "end")
}
