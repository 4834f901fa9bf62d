// Command attentionarm generates the arm64 kernels of attention: tiles of scores and of weighted values over each
// cache type, the softmax of blocks, and their merging.
package main

import (
	"fmt"

	. "grove/internal/kernel/_asm/arm64"
	. "grove/internal/kernel/_asm/neon"
)

func main() {
	floatTiles()
	scoresQ8()
	scaleWeights()
	widen()
	softmax()
	capScores()
	mergeSums()
	merge()
	halves()
	roundBlock()
	Generate()
}

const (
	lanes     = 16 // outputs of a group: keys that lie side by side
	parts     = 4  // registers of a group
	cacheLine = 64
)

// perRows emits one body for each number of rows a tile can have, and the choice by the parameter rows. A body gets a
// prefix for its labels and falls out of its end.
func perRows(counts []int, body func(n int, label string)) {
	for _, r := range counts {
		label := fmt.Sprintf("rows%d", r)
		if r > 1 {
			n := Arg("rows")
			Text("CMP $%d, %v", r, n)
			Text("BNE %snot", label)
		}
		FreeAll()
		body(r, label)
		Return()
		if r > 1 {
			Label(label + "not")
		}
	}
	FreeAll()
}

// rowPointers returns a pointer to each of n rows that lie stride bytes apart.
func rowPointers(first, stride R, n int) []R {
	p := []R{first}
	for r := 1; r < n; r++ {
		next := Reg()
		Text("ADD %v, %v, %v", stride, p[r-1], next)
		p = append(p, next)
	}
	return p
}

func prefetch(p R, disp int) { Text("PRFM %d(%v), PLDL1KEEP", disp, p) }

func halves() {
	Func("halvesNEON", "func(dst []byte, x []float32)",
		"halvesNEON rounds x to halves, the elements up to the last multiple of 8.")
	dst, x, v := Arg("dst_base"), Arg("x_base"), Vecs(2)
	Each("x", func() {
		Load(v, x, 0)
		FCVTN(H4, v[0], v[0])
		FCVTN(H8, v[0], v[1])
		STRQ(v[0], dst, 0)
		Advance(16, dst)
	}, x)
	Return()
}

func roundBlock() {
	Func("roundBlockNEON", "func(dst *[32]byte, x *[32]float32, id float32)", "roundBlockNEON is roundBlockGo.")
	dst, x, id, least, v := Arg("dst"), Arg("x"), ArgFloat("id"), Vec(), Vecs(8)
	MOVI(B16, least, 0x81, 0)
	Load(v, x, 0)
	for i := range v {
		FMULElem(S4, v[i], v[i], id, 0)
	}
	for i := range v {
		FCVTNS(S4, v[i], v[i])
	}
	for i := 0; i < 8; i += 2 {
		SQXTN(H4, v[i], v[i])
		SQXTN(H8, v[i], v[i+1])
	}
	for i := 0; i < 8; i += 4 {
		SQXTN(B8, v[i], v[i])
		SQXTN(B16, v[i], v[i+2])
		SMAX(B16, v[i], v[i], least)
	}
	STPQ(v[0], v[4], dst, 0)
	Return()
}
