// Command attention generates the kernels of attention, for AVX2 and for AVX-512: tiles of scores and of
// weighted values over each cache type, the softmax of blocks, and their merging.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
	"grove/internal/kernel/_asm/vex"
)

func main() {
	ConstraintExpr("amd64,!purego")
	vex.Rewrite()
	for _, s := range []set{avx2, avx512} {
		Vector = s.vector
		floatTiles(s)
		manyRows(s)
		scoresQ8(s)
		scaleWeights(s)
		softmax(s)
		merge(s)
	}
	for _, s := range []set{vnni256, vnni512} {
		Vector = s.vector
		scoresQ8(s)
	}
	Vector = YMM
	capScores()
	mergeSums()
	halves()
	roundBlock()
	Generate()
}

// lanes is the number of outputs of a group: of keys that lie side by side.
const lanes = 16

// A set is an instruction set: its registers, and the shapes of its tiles.
type set struct {
	name     string
	vector   func() reg.VecVirtual
	parts    int                                             // registers of a group
	tiles    map[int]int                                     // rows of a float tile: groups beside each other
	many     int                                             // groups of a tile of many rows, at most
	queries  int                                             // of a tile of 8-bit scores, at most
	negative func(k, zero reg.Register) func(v reg.Register) // returns what moves the signs of k to v; nil: dot products of bytes
}

// A register beyond the accumulators holds a weight, those of a step a value each.
var (
	avx2   = set{"AVX2", YMM, 2, map[int]int{1: 4, 2: 2, 4: 1, 6: 1}, 1, 4, signsAVX2}
	avx512 = set{"AVX512", ZMM, 1, map[int]int{1: 4, 2: 4, 4: 4, 8: 2}, 4, 8, signsAVX512}

	vnni256 = set{name: "VNNI256", vector: YMM, parts: 2, queries: 4}
	vnni512 = set{name: "VNNI512", vector: ZMM, parts: 1, queries: 8}
)

// A matrix is a stack of rows, of which any of eight is one operand: through a pointer to row 0, for more
// than four one to row 4, and registers that hold one and three strides. Those that n rows do not need are
// nil.
type matrix struct{ row0, row4, stride, stride3 reg.GPVirtual }

// rows returns the matrix of n rows from a pointer; stride is in bytes.
func rows(row0, stride reg.GPVirtual, n int) matrix {
	m := matrix{row0: row0, stride: stride}
	if n > 2 {
		m.stride3 = GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, m.stride3)
	}
	if n > 4 {
		m.row4 = GP64()
		LEAQ(Mem{Base: row0, Index: stride, Scale: 4}, m.row4)
	}
	return m
}

// beside returns a matrix of as many rows as far apart, from another pointer.
func (m matrix) beside(row0 reg.GPVirtual) matrix {
	row4 := m.row4
	if row4 != nil {
		row4 = GP64()
		LEAQ(Mem{Base: row0, Index: m.stride, Scale: 4}, row4)
	}
	return matrix{row0, row4, m.stride, m.stride3}
}

func (m matrix) at(row, disp int) Mem {
	at := Mem{Base: m.row0, Disp: disp}
	if row >= 4 {
		at.Base = m.row4
	}
	switch row % 4 {
	case 1, 2:
		at.Index, at.Scale = m.stride, uint8(row%4)
	case 3:
		at.Index, at.Scale = m.stride3, 1
	}
	return at
}

// advance moves all rows by a number of bytes.
func (m matrix) advance(bytes Op) {
	ADDQ(bytes, m.row0)
	if m.row4 != nil {
		ADDQ(bytes, m.row4)
	}
}

// perRows emits one body for each number of rows a tile can have, and the choice by the parameter rows. A
// body gets a prefix for its labels and falls out of its end.
func perRows(counts []int, body func(n int, label string)) {
	n := Int("rows")
	for _, r := range counts {
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

// address returns the place of a parameter, which a function may use as a variable.
func address(param string) Mem {
	b, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// laneNumbers returns a vector of 0, 1, 2 and so on.
func laneNumbers() reg.VecVirtual {
	v, words := Vector(), make([]uint32, Lanes())
	for i := range words {
		words[i] = uint32(i)
	}
	VMOVUPS(Words(fmt.Sprintf("lanes%d", len(words)), words), v)
	return v
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
	VMOVUPS(Words("order", []uint32{0, 4, 1, 5, 2, 6, 3, 7}), v[1])
	VPERMD(v[0], v[1], v[0])
	VMOVUPS(v[0], Mem{Base: dst})
	End()
}
