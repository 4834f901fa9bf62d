package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The tiles of the set avx512-amx: one instruction multiplies a matrix of activations, 16 rows by 32 inputs as they lie, by
// the 8 quads of a packed block, and gives the exact sums of 16 rows by 16 outputs. They go through memory to the
// registers of the chains.

const (
	matrixRows   = 16 // rows of the largest tile
	matrixFewest = 13 // up to 12 a tile of dot products does as well

	// The matrices of a block are multiplied some blocks before its sums are used. The ring holds twice as many blocks, so
	// that the sums to write and those to read lie half a ring apart.
	lead      = 4
	sumBytes  = matrixRows * 64
	ringBytes = 2 * lead * sumBytes
)

// The frame of a tile.
const (
	ringDW      = ringBytes          // [2*lead][16] scales of the weights
	matrixD     = ringDW + 2*lead*64 // [row][16 blocks] scales of the activations
	matrixFrame = matrixD + matrixRows*64
)

// The registers of a tile that its instructions of matrices name.
var (
	matrixX      = reg.RSI // activations of the block to multiply next
	matrixStride = reg.RDI // bytes of a row of activations
	matrixW      = reg.RBX // weights of that block
	matrixLine   = reg.R8  // 64
	matrixSums   = reg.R9  // place in the ring
	matrixRoom   = reg.R10 // the frame, at a multiple of 64 bytes
)

// matrixTiles emits the tiles of Q8_0. Weights that had to be unpacked for one block after another would go through memory:
// those of 4 bits lose more by that than they gain.
func matrixTiles() {
	TEXT("tileQ8_0AMX", 0, "func(dst *float32, stride int, w *byte, nb int, q *int8, d *float32, n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("tileQ8_0AMX writes the products of n rows (%d to %d) of nb > 0 blocks by a packed group of Q8_0", matrixFewest, matrixRows),
		"weights to 16 elements of each of n rows of dst, stride elements apart.")
	room := AllocLocal(matrixFrame + 56)
	n := Load(Param("n"), GP64())
	for r := matrixFewest; r < matrixRows; r++ {
		CMPQ(n, U8(r))
		JE(LabelRef(fmt.Sprintf("rows%d", r)))
	}
	for r := matrixRows; r >= matrixFewest; r-- {
		Label(fmt.Sprintf("rows%d", r))
		LEAQ(room.Offset(56), matrixRoom)
		ANDQ(I8(-64), matrixRoom)
		prefetchRows(r)
		tileConfigure(r)
		matrixTile(r)
		tileRelease()
		VZEROUPPER()
		RET()
	}
}

// matrixTile emits the loop over blocks: the multiplication of a later block, then the chains of this one.
func matrixTile(n int) {
	Load(Param("q"), matrixX)
	Load(Param("w"), matrixW)
	Load(Param("nb"), matrixStride)
	left, next, at, off := GP64(), GP64(), GP64(), GP64() // blocks to use, to multiply; places of the block's scales, in the ring
	MOVQ(matrixStride, left)
	MOVQ(matrixStride, next)
	SHLQ(U8(5), matrixStride)
	MOVQ(U32(64), matrixLine)
	XORQ(off, off)
	d := Load(Param("d"), GP64())
	chain := registers(n)
	zero(chain...)
	label := func(name string) string { return fmt.Sprintf("%s%d", name, n) }
	multiply := func(none string) {
		TESTQ(next, next)
		JZ(LabelRef(none))
		matrixMultiply(off)
		DECQ(next)
		Label(none)
	}
	advance := func() {
		ADDQ(U32(sumBytes), off)
		ANDQ(U32(ringBytes-1), off)
	}

	Label(label("first"))
	multiply(label("few"))
	advance()
	CMPQ(off, U32(lead*sumBytes))
	JNE(LabelRef(label("first")))

	Label(label("scales"))
	matrixScales(n, d, left)
	MOVQ(matrixRoom, at)
	Label(label("block"))
	multiply(label("last"))
	matrixChains(at, off, chain)
	advance()
	ADDQ(U8(4), at)
	DECQ(left)
	JZ(LabelRef(label("done")))
	end := GP64()
	LEAQ(Mem{Base: matrixRoom, Disp: 64}, end)
	CMPQ(at, end)
	JNE(LabelRef(label("block")))
	JMP(LabelRef(label("scales")))
	Label(label("done"))
	storeRows(chain)
}

// matrixMultiply emits the sums of the next block and the scales of its weights, at off in the ring.
func matrixMultiply(off reg.Register) {
	dw, at := ZMM(), GP64()
	VCVTPH2PS(Mem{Base: matrixW}, dw)
	MOVQ(off, at)
	SHRQ(U8(4), at) // sums of 16 rows to scales of one
	VMOVUPS(dw, Mem{Base: matrixRoom, Index: at, Scale: 1, Disp: ringDW})
	for i := range (scaleBytes + 8*wide + 63) / 64 {
		PREFETCHT0(Mem{Base: matrixW, Disp: 64 * (ahead + i)})
	}
	LEAQ(Mem{Base: matrixRoom, Index: off, Scale: 1}, matrixSums)
	tileZero(tileSums)
	tileLoad(tileX, matrixX, matrixStride, 0)
	tileLoad(tileW, matrixW, matrixLine, scaleBytes)
	tileDot(tileSums, tileX, tileW)
	tileStore(tileSums, matrixSums, matrixLine)
	ADDQ(U8(32), matrixX)
	ADDQ(U32(scaleBytes+8*wide), matrixW)
}

// matrixScales emits the copy of the scales of the activations of 16 blocks, or of those that are left, to the frame.
func matrixScales(n int, d, left reg.Register) {
	const all = 0xffff
	mask, blocks, row, stride := K(), GP64(), GP64(), strideOf("nb", 2)
	MOVQ(U32(16), blocks)
	CMPQ(left, blocks)
	CMOVQLT(left, blocks)
	bits := GP64()
	MOVQ(U32(all), bits)
	BZHIQ(blocks, bits, bits)
	KMOVW(bits.As32(), mask)
	MOVQ(d, row)
	for r := range n {
		y := ZMM()
		VMOVUPS_Z(Mem{Base: row}, mask, y)
		VMOVUPS(y, Mem{Base: matrixRoom, Disp: matrixD + 64*r})
		if r < n-1 {
			ADDQ(stride, row)
		}
	}
	ADDQ(U8(64), d)
}

// matrixChains emits the steps of the chains for the block whose sums lie half a ring from off.
func matrixChains(at, off reg.Register, chain []reg.VecVirtual) {
	sums, scales, dw := GP64(), GP64(), ZMM()
	MOVQ(off, sums)
	XORQ(U32(lead*sumBytes), sums)
	MOVQ(sums, scales)
	SHRQ(U8(4), scales)
	ADDQ(matrixRoom, sums)
	VMOVUPS(Mem{Base: matrixRoom, Index: scales, Scale: 1, Disp: ringDW}, dw)
	for r := range chain {
		sum, scale := ZMM(), ZMM()
		VCVTDQ2PS(Mem{Base: sums, Disp: 64 * r}, sum)
		VMULPS_BCST(Mem{Base: at, Disp: matrixD + 64*r}, dw, scale)
		VFMADD231PS(sum, scale, chain[r])
	}
}

// prefetchRows emits the prefetch of the lines of n rows that [storeRows] writes: they come while the tile computes.
func prefetchRows(n int) {
	dst, stride := Load(Param("dst"), GP64()), strideOf("stride", 2)
	for r := range n {
		PREFETCHT0(Mem{Base: dst})
		if r < n-1 {
			ADDQ(stride, dst)
		}
	}
}
