package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The tiles of the set avx512-vnni: a register is 16 outputs by a quad of inputs, one dot product adds it to the sums of a
// row, and the quad of activations is a broadcast from memory that takes no vector port. All rows of a tile go in step,
// so that no dot product waits for the one before.

const (
	dotRows = 12 // rows of the largest tile: as many chains and sums of a block, and 8 registers for the rest

	// Sums that start from the bits of the float 1.5 * 2^23 are, as bits, the float of that plus the sum, while this lies
	// within ±2^22.
	dotMagic  = 0x4b400000
	minusBits = 1 << 31
)

// Cache lines that prefetches run ahead of the weights. A line comes from memory to the second-level cache first, and from
// there to the first, so that it holds one of the few line buffers of the first for a short time.
const (
	farAhead  = 64
	nearAhead = 16
)

// The frame of every tile begins with values of [row][16 blocks].
const (
	dotValues = 4 * 16
	dotScales = 0                             // scales of the activations
	dotStarts = dotScales + dotRows*dotValues // what the sums start from, or the sums of the activations as floats
	dotMore   = dotStarts + dotRows*dotValues // for types with halves and minima
	dotTop    = dotMore + dotRows*dotValues
)

// A dotTile is the state of a tile of n rows.
type dotTile struct {
	n           int
	w           reg.Register
	x           matrix
	frame       reg.Register // at a multiple of 64 bytes
	at          reg.Register // in the frame, a value further for each block
	chain       []reg.VecVirtual
	acc         []reg.VecVirtual
	blocks      reg.Register                     // mask of the blocks that values are prepared for
	scales      reg.Register                     // where the frame holds the scales of a sub-block
	next, lines int                              // of the cache lines of a block that are prefetched
	use         func(quad int, u reg.VecVirtual) // of an expansion: takes the weights, for there are no rows
}

// value returns a value of a row and the block.
func (t *dotTile) value(what, r int) Mem { return Mem{Base: t.at, Disp: what + dotValues*r} }

// dots adds the products of the weights u of a quad to the sums of all rows.
func (t *dotTile) dots(quad int, u reg.VecVirtual) {
	for r, acc := range t.acc {
		VPDPBUSD_BCST(t.x.at(r, 4*quad), u, acc)
	}
	if t.use != nil {
		t.use(quad, u)
	}
	t.prefetch(1)
}

// prefetch emits the prefetch of up to n more of the lines of a block.
func (t *dotTile) prefetch(n int) {
	for ; n > 0 && t.next < t.lines; n-- {
		t.prefetchLine(t.next)
		t.next++
	}
}

// prefetchLine emits the prefetch of what follows a line of weights.
func (t *dotTile) prefetchLine(line int) {
	PREFETCHT1(Mem{Base: t.w, Disp: 64 * (farAhead + line)})
	PREFETCHT0(Mem{Base: t.w, Disp: 64 * (nearAhead + line)})
}

// dotFunction emits the tile function of a type with a frame of so many bytes.
func dotFunction(name string, frame int, body func(t *dotTile)) {
	fn := "tile" + name + "VNNI512"
	TEXT(fn, 0, "func(dst *float32, stride int, w *byte, nb int, x *int8, d *float32, sum *int32, n int)")
	Pragma("noescape")
	Doc(fn+" writes the products of n rows (1 to 12) of nb > 0 blocks by a packed group of "+name,
		"weights to 16 elements of each of n rows of dst, stride elements apart.")
	room := AllocLocal(frame + 56)
	perRows(dotRows, func(n int) {
		t := &dotTile{n: n, w: Load(Param("w"), GP64()), frame: GP64(), at: GP64(), chain: registers(n)}
		LEAQ(room.Offset(56), t.frame)
		ANDQ(I8(-64), t.frame)
		zero(t.chain...)
		body(t)
		storeRows(t.chain)
	})
}

// prepare emits, for the blocks of the mask or for 8, the copy of the scales of the activations to the frame, and what each
// makes of their sums. It moves both pointers by so many bytes.
func (t *dotTile) prepare(d, sum, stride reg.Register, bytes int, each func(r int, sums Mem)) {
	dRow, sumRow := GP64(), GP64()
	MOVQ(d, dRow)
	MOVQ(sum, sumRow)
	for r := range t.n {
		VMOVDQU32(t.load(Mem{Base: dRow}), Mem{Base: t.frame, Disp: dotScales + dotValues*r})
		each(r, Mem{Base: sumRow})
		if r < t.n-1 {
			ADDQ(stride, dRow)
			ADDQ(stride, sumRow)
		}
	}
	ADDQ(U8(bytes), d)
	ADDQ(U8(bytes), sum)
	MOVQ(t.frame, t.at)
}

// load emits the load of a value of each block.
func (t *dotTile) load(from Mem) reg.VecVirtual {
	if t.blocks == nil {
		y := YMM()
		VMOVDQU32(from, y)
		return y
	}
	y := ZMM()
	VMOVDQU32_Z(from, t.blocks, y)
	return y
}

// starts returns what prepares sums that start from the bits of a float less so many times the sums of the activations.
func (t *dotTile) starts(less int, from uint32) func(r int, sums Mem) {
	factor := constant(fmt.Sprintf("minus%d", less), uint32(-less))
	return func(r int, sums Mem) {
		y := t.load(sums)
		VPMULLD_BCST(factor, y, y)
		if from != 0 {
			VPADDD_BCST(constant("magic", from), y, y)
		}
		VMOVDQU32(y, Mem{Base: t.frame, Disp: dotStarts + dotValues*r})
	}
}

// floats prepares the sums of the activations as floats.
func (t *dotTile) floats(r int, sums Mem) {
	y := t.load(sums)
	VCVTDQ2PS(y, y)
	VMOVDQU32(y, Mem{Base: t.frame, Disp: dotStarts + dotValues*r})
}

// begin emits the start of the sums of a block from values of the frame.
func (t *dotTile) begin(from int) {
	t.acc = registers(t.n)
	for r, acc := range t.acc {
		VPBROADCASTD(t.value(from, r), acc)
	}
}

// beginZero emits sums that start from zero.
func (t *dotTile) beginZero() {
	t.acc = registers(t.n)
	zero(t.acc[0])
	fill(t.acc[0], t.acc[1:])
}

// fill emits copies of a register, which take no vector port. The generator takes a register that is cleared for one that is
// in use before, so clearing many at once costs registers.
func fill(from reg.VecVirtual, to []reg.VecVirtual) {
	for _, y := range to {
		VMOVDQA64(from, y)
	}
}

// constant returns a word in memory, to broadcast.
func constant(name string, word uint32) Mem {
	return vector(name, func(int) uint32 { return word })
}

// A dotWeights emits the unsigned weights of a block whose bits begin at disp, quad by quad.
type dotWeights func(t *dotTile, disp int)

// A dotType is a type of blocks of 32 inputs.
type dotType struct {
	name    string
	head    int // bytes of the scales of 16 outputs
	offsets bool
	bits    int // bytes of the inputs of 16 outputs
	less    int // what the weights are too large by
	weights func() dotWeights
}

var dotTypes = []dotType{
	{name: "Q8_0", head: scaleBytes, bits: 8 * wide, less: 128, weights: dotBytes},
	{name: "Q4_0", head: scaleBytes, bits: 4 * wide, less: 8, weights: func() dotWeights { return dotNibbles(nil) }},
	{name: "Q4_1", head: 2 * scaleBytes, offsets: true, bits: 4 * wide, weights: func() dotWeights { return dotNibbles(nil) }},
	{name: "Q5_0", head: scaleBytes, bits: 5 * wide, less: 16, weights: dotFiveBits},
	{name: "Q5_1", head: 2 * scaleBytes, offsets: true, bits: 5 * wide, weights: dotFiveBits},
	{name: "IQ4_NL", head: scaleBytes, bits: 4 * wide, less: 128, weights: dotIQ4},
	{name: "MXFP4", head: 16, bits: 4 * wide, less: fp4Less, weights: func() dotWeights {
		codes := ZMM()
		VBROADCASTI32X4(codebook("fp4", fp4Values, fp4Less), codes)
		return dotNibbles(codes)
	}},
}

func wideDotTiles() {
	for _, k := range dotTypes {
		k.tile()
	}
	for _, k := range dotSupers {
		k.tile()
	}
}

// tile emits the product of n rows by a group of weights of a type.
func (k dotType) tile() {
	dotFunction(k.name, dotMore, func(t *dotTile) {
		left, stride := Load(Param("nb"), GP64()), strideOf("nb", 2)
		d, sum := Load(Param("d"), GP64()), Load(Param("sum"), GP64())
		t.x, t.blocks = rows("x", strideOf("nb", 5), t.n), K()
		weights := k.weights()
		outer, inner, full := fmt.Sprintf("run%d", t.n), fmt.Sprintf("block%d", t.n), fmt.Sprintf("full%d", t.n)
		Label(outer)
		mask, run := GP64(), reg.RCX
		MOVQ(left, run)
		CMPQ(run, U8(16))
		JLE(LabelRef(full))
		MOVQ(U32(16), run)
		Label(full)
		SUBQ(run, left)
		MOVQ(U32(1), mask)
		SHLQ(reg.CL, mask)
		DECQ(mask)
		KMOVW(mask.As32(), t.blocks)
		if k.offsets {
			t.prepare(d, sum, stride, dotValues, t.floats)
		} else {
			t.prepare(d, sum, stride, dotValues, t.starts(k.less, 0))
		}
		Label(inner)
		t.lines, t.next = (k.head+k.bits+63)/64, 0
		if k.offsets {
			t.beginZero()
		} else {
			t.begin(dotStarts)
		}
		weights(t, k.head)
		t.prefetch(blockQuads)
		k.finish(t)
		ADDQ(U32(k.head+k.bits), t.w)
		ADDQ(U8(4), t.at)
		t.x.advance(32)
		DECQ(run)
		JNZ(LabelRef(inner))
		TESTQ(left, left)
		JNZ(LabelRef(outer))
	})
}

// scales emits the scales of a block.
func (k dotType) scales(t *dotTile) reg.VecVirtual {
	dw := ZMM()
	if k.head < scaleBytes {
		dotExponents(t, dw)
	} else {
		VCVTPH2PS(Mem{Base: t.w}, dw)
	}
	return dw
}

// finish emits the steps of the chains for the sums of a block.
func (k dotType) finish(t *dotTile) {
	dw := k.scales(t)
	for r, acc := range t.acc {
		scale := ZMM()
		VMULPS_BCST(t.value(dotScales, r), dw, scale)
		VCVTDQ2PS(acc, acc)
		VFMADD231PS(acc, scale, t.chain[r])
	}
	if !k.offsets {
		return
	}
	VCVTPH2PS(Mem{Base: t.w, Disp: scaleBytes}, dw)
	for r := range t.acc {
		offset := ZMM()
		VMULPS_BCST(t.value(dotScales, r), dw, offset)
		VFMADD231PS_BCST(t.value(dotStarts, r), offset, t.chain[r])
	}
}

// dotBytes are signed bytes, made unsigned by their highest bits.
func dotBytes() dotWeights {
	high := each32("bytes80", 0x80808080)
	return func(t *dotTile, disp int) {
		for j := range blockQuads {
			u := ZMM()
			VPXORD(Mem{Base: t.w, Disp: disp + wide*j}, high, u)
			t.dots(j, u)
		}
	}
}

// dotNibbles are nibbles, or the bytes of a codebook.
func dotNibbles(codes reg.VecVirtual) dotWeights {
	mask := each32("bytes0f", 0x0f0f0f0f)
	return func(t *dotTile, disp int) {
		for j := range halfQuads {
			low, high := ZMM(), ZMM()
			VMOVDQU8(Mem{Base: t.w, Disp: disp + wide*j}, high)
			VPANDD(high, mask, low)
			VPSRLW(U8(4), high, high)
			VPANDD(high, mask, high)
			if codes != nil {
				VPSHUFB(low, codes, low)
				VPSHUFB(high, codes, high)
			}
			t.dots(j, low)
			t.dots(halfQuads+j, high)
		}
	}
}

// dotIQ4 are the bytes of the codebook of IQ4_NL, 128 too large.
func dotIQ4() dotWeights {
	codes := ZMM()
	VBROADCASTI32X4(codebook("iq4above", iq4Values, 128), codes)
	return dotNibbles(codes)
}

// dotFiveBits are nibbles with a quad of bytes of fifth bits behind them.
func dotFiveBits() dotWeights {
	const orAnd = 0xf8 // the destination, or both sources
	mask, fifth := each32("bytes0f", 0x0f0f0f0f), each32("bytes10", 0x10101010)
	return func(t *dotTile, disp int) {
		bits := ZMM()
		VMOVDQU8(Mem{Base: t.w, Disp: disp + wide*halfQuads}, bits)
		for j := range halfQuads {
			low, high, bit := ZMM(), ZMM(), ZMM()
			VMOVDQU8(Mem{Base: t.w, Disp: disp + wide*j}, high)
			VPANDD(high, mask, low)
			VPSRLW(U8(4), high, high)
			VPANDD(high, mask, high)
			VPSLLW(U8(4-j), bits, bit)
			VPTERNLOGD(U8(orAnd), fifth, bit, low)
			t.dots(j, low)
			if j == 0 {
				VPTERNLOGD(U8(orAnd), fifth, bits, high)
			} else {
				VPSRLW(U8(j), bits, bit)
				VPTERNLOGD(U8(orAnd), fifth, bit, high)
			}
			t.dots(halfQuads+j, high)
		}
	}
}

// dotExponents emits the scales of a block of MXFP4 as [blockTile.exponents] does.
func dotExponents(t *dotTile, dw reg.VecVirtual) {
	e, small, subnormal := ZMM(), ZMM(), ZMM()
	VPMOVZXBD(Mem{Base: t.w}, e)
	VPMINSD_BCST(constant("two", 2), e, small)
	VPBROADCASTD(constant("subnormal", 1<<21), subnormal)
	VPSLLVD(small, subnormal, small)
	VPSUBD_BCST(constant("one", 1), e, e)
	VPSLLD(U8(23), e, e)
	VPMAXSD(small, e, dw)
}
