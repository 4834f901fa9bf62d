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
	ringDW      = ringBytes               // [2*lead][16] scales of packed weights
	matrixD     = ringDW + 2*lead*64      // [row][16 blocks] scales of the activations
	matrixSum   = matrixD + matrixRows*64 // and their sums as floats
	matrixFrame = matrixSum + matrixRows*64
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

// A matrixType is what a tile multiplies by: 8 quads of 16 outputs of signed bytes, with scales before them.
type matrixType struct {
	name   string
	head   int  // bytes of the scales: half floats, or floats of an expanded block
	minima bool // the scales are of a sub-block: integers, minima, d and dmin
}

var matrixTypes = []matrixType{
	{name: "Q8_0", head: scaleBytes},
	{name: "Bytes", head: expandedHead},
	{name: "Scaled", head: expandedSuperHead, minima: true},
}

// matrixTiles emits the tiles and what expands blocks for them.
func matrixTiles() {
	for _, k := range matrixTypes {
		k.tile()
	}
	expansions()
}

func (k matrixType) size() int    { return k.head + 8*wide }
func (k matrixType) packed() bool { return k.head == scaleBytes }

func (k matrixType) tile() {
	params, weights := "q *int8, d *float32", "expanded"
	if k.minima {
		params += ", sum *int32"
	}
	if k.packed() {
		weights = "packed"
	}
	fn := "tile" + k.name + "AMX"
	TEXT(fn, 0, "func(dst *float32, stride int, w *byte, nb int, "+params+", n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s writes the products of n rows (%d to %d) of nb > 0 blocks by a group of %s", fn, matrixFewest, matrixRows, weights),
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
		k.loop(r)
		tileRelease()
		VZEROUPPER()
		RET()
	}
}

// loop emits the loop over blocks: the multiplication of a later block, then the chains of this one.
func (k matrixType) loop(n int) {
	Load(Param("q"), matrixX)
	Load(Param("w"), matrixW)
	Load(Param("nb"), matrixStride)
	left, next, at, off := GP64(), GP64(), GP64(), GP64() // blocks to use, to multiply; places of the block's scales, in the ring
	MOVQ(matrixStride, left)
	MOVQ(matrixStride, next)
	SHLQ(U8(5), matrixStride)
	MOVQ(U32(64), matrixLine)
	XORQ(off, off)
	done := GP64() // bytes of a row's scales that are in the frame
	XORQ(done, done)
	w := GP64() // expanded weights of the block to use
	if !k.packed() {
		MOVQ(matrixW, w)
	}
	chain := registers(n)
	zero(chain...)
	label := func(name string) string { return fmt.Sprintf("%s%d", name, n) }
	multiply := func(none string) {
		TESTQ(next, next)
		JZ(LabelRef(none))
		k.multiply(off)
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
	k.values(n, done, left)
	MOVQ(matrixRoom, at)
	Label(label("block"))
	multiply(label("last"))
	k.chains(at, off, w, chain)
	if !k.packed() {
		ADDQ(U32(k.size()), w)
	}
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

// multiply emits the sums of the next block, at off in the ring, and the scales of packed weights.
func (k matrixType) multiply(off reg.Register) {
	if k.packed() {
		dw, at := ZMM(), GP64()
		VCVTPH2PS(Mem{Base: matrixW}, dw)
		MOVQ(off, at)
		SHRQ(U8(4), at) // sums of 16 rows to scales of one
		VMOVUPS(dw, Mem{Base: matrixRoom, Index: at, Scale: 1, Disp: ringDW})
		for i := range (k.size() + 63) / 64 {
			PREFETCHT0(Mem{Base: matrixW, Disp: 64 * (ahead + i)})
		}
	}
	LEAQ(Mem{Base: matrixRoom, Index: off, Scale: 1}, matrixSums)
	tileZero(tileSums)
	tileLoad(tileX, matrixX, matrixStride, 0)
	tileLoad(tileW, matrixW, matrixLine, k.head)
	tileDot(tileSums, tileX, tileW)
	tileStore(tileSums, matrixSums, matrixLine)
	ADDQ(U8(32), matrixX)
	ADDQ(U32(k.size()), matrixW)
}

// values emits the copy of the scales of the activations of 16 blocks, or of those that are left, to the frame, and of their
// sums where there are minima.
func (k matrixType) values(n int, done, left reg.Register) {
	const all = 0xffff
	mask, blocks, stride := K(), GP64(), strideOf("nb", 2)
	MOVQ(U32(16), blocks)
	CMPQ(left, blocks)
	CMOVQLT(left, blocks)
	bits := GP64()
	MOVQ(U32(all), bits)
	BZHIQ(blocks, bits, bits)
	KMOVW(bits.As32(), mask)
	rows := func(param string, copy func(from Mem, r int)) {
		row := Load(Param(param), GP64())
		ADDQ(done, row)
		for r := range n {
			copy(Mem{Base: row}, r)
			if r < n-1 {
				ADDQ(stride, row)
			}
		}
	}
	rows("d", func(from Mem, r int) {
		y := ZMM()
		VMOVUPS_Z(from, mask, y)
		VMOVUPS(y, Mem{Base: matrixRoom, Disp: matrixD + 64*r})
	})
	if k.minima {
		rows("sum", func(from Mem, r int) {
			y := ZMM()
			VCVTDQ2PS_Z(from, mask, y)
			VMOVUPS(y, Mem{Base: matrixRoom, Disp: matrixSum + 64*r})
		})
	}
	ADDQ(U8(64), done)
}

// chains emits the steps of the chains for the block whose sums lie half a ring from off, and whose expanded weights lie at w.
func (k matrixType) chains(at, off, w reg.Register, chain []reg.VecVirtual) {
	sums := GP64()
	MOVQ(off, sums)
	XORQ(U32(lead*sumBytes), sums)
	d := ZMM()
	var integers, minima, dmin reg.VecVirtual
	switch {
	case k.packed():
		scales := GP64()
		MOVQ(sums, scales)
		SHRQ(U8(4), scales)
		VMOVUPS(Mem{Base: matrixRoom, Index: scales, Scale: 1, Disp: ringDW}, d)
	case k.minima:
		integers, minima, dmin = ZMM(), ZMM(), ZMM()
		for i, y := range [...]reg.VecVirtual{integers, minima, d, dmin} {
			VMOVUPS(Mem{Base: w, Disp: wide * i}, y)
		}
	default:
		VMOVUPS(Mem{Base: w}, d)
	}
	ADDQ(matrixRoom, sums)
	for r := range chain {
		sum, scale := ZMM(), ZMM()
		dx := Mem{Base: at, Disp: matrixD + 64*r}
		VCVTDQ2PS(Mem{Base: sums, Disp: 64 * r}, sum)
		VMULPS_BCST(dx, d, scale)
		if k.minima {
			VMULPS(integers, sum, sum) // exact: 32 * 31 * 127 times 63 is less than 2^24
		}
		VFMADD231PS(sum, scale, chain[r])
		if k.minima {
			low, lowScale := ZMM(), ZMM()
			VMULPS_BCST(Mem{Base: at, Disp: matrixSum + 64*r}, minima, low)
			VMULPS_BCST(dx, dmin, lowScale)
			VFNMADD231PS(low, lowScale, chain[r])
		}
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
