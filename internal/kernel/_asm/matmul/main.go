// Command matmul generates the tiles of matrix products of one instruction set.
package main

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"grove/internal/kernel/_asm/vex"
)

const (
	maxRows = 6  // rows of the largest tile of floats and Q8_0: 12 of 16 vector registers accumulate
	vectors = 2  // vectors of 8 outputs in a group
	ahead   = 32 // cache lines that software prefetch runs ahead of the weights
)

// sets emit the tiles of an instruction set: those of AVX2 for all types of weights, the others for some.
var sets = map[string]func(){"avx2": narrowTiles, "avx512": wideTiles, "avx-vnni": dotTiles, "avx512-vnni": wideDotTiles, "avx512-amx": matrixTiles}

func main() {
	name := flag.String("set", "", "the instruction set: avx2, avx512, avx-vnni, avx512-vnni or avx512-amx")
	flag.Parse()
	emit, ok := sets[*name]
	if !ok {
		fmt.Fprintf(os.Stderr, "matmul: -set %q: no such instruction set\n", *name)
		os.Exit(2)
	}
	ConstraintExpr("amd64,!purego")
	if *name == "avx-vnni" {
		vex.Rewrite()
	}
	emit()
	Generate()
}

func narrowTiles() {
	for _, t := range floatTypes {
		floatTile(t, 1, maxRows)
		floatTile(t, 2, 3)
		floatTile(t, 4, 1)
	}
	signedTile(typeQ8_0)
	signedTile(typeIQ4NL)
	iq4XSTile()
	for _, k := range types32 {
		tile32(k)
	}
	nibbleSuperTile(typeQ4K)
	nibbleSuperTile(typeQ5K)
	signedSuperTile(typeQ6K)
	signedSuperTile(typeQ3K)
	q2KTile()
}

// A matrix of rows is addressed through pointers to its rows 0, 3 and 6, so that any row is one operand.
type matrix struct {
	every3 []reg.GPVirtual
	stride reg.GPVirtual
}

// rows returns the matrix of n rows at a parameter; stride is in bytes.
func rows(param string, stride reg.GPVirtual, n int) matrix {
	p := GP64()
	Load(Param(param), p)
	m := matrix{[]reg.GPVirtual{p}, stride}
	for r := 3; r < n; r += 3 {
		p = GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, p)
		ADDQ(m.every3[r/3-1], p)
		m.every3 = append(m.every3, p)
	}
	return m
}

func (m matrix) at(row, disp int) Mem {
	a := Mem{Base: m.every3[row/3], Disp: disp}
	if row%3 > 0 {
		a.Index, a.Scale = m.stride, uint8(row%3)
	}
	return a
}

// advance moves all rows by n bytes.
func (m matrix) advance(n int) {
	for _, p := range m.every3 {
		ADDQ(U32(n), p)
	}
}

// strideOf returns a parameter's value times a power of two.
func strideOf(param string, shift int) reg.GPVirtual {
	s := GP64()
	Load(Param(param), s)
	SHLQ(U8(shift), s)
	return s
}

// perRows emits one body for each number of rows up to most, chosen by the parameter n.
func perRows(most int, body func(n int)) {
	n := GP64()
	Load(Param("n"), n)
	for r := 1; r < most; r++ {
		CMPQ(n, U8(r))
		JE(LabelRef(fmt.Sprintf("rows%d", r)))
	}
	for r := most; r >= 1; r-- {
		Label(fmt.Sprintf("rows%d", r))
		body(r)
		VZEROUPPER()
		RET()
	}
}

func function(name, signature string, doc ...string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc...)
}

func accumulators(n int) [][vectors]reg.VecVirtual {
	acc := make([][vectors]reg.VecVirtual, n)
	for r := range acc {
		acc[r] = vectorPair()
	}
	return acc
}

func vectorPair() [vectors]reg.VecVirtual { return [vectors]reg.VecVirtual{YMM(), YMM()} }
