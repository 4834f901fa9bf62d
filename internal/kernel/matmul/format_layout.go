package matmul

import (
	"encoding/binary"

	"grove/internal/kernel"
	"grove/weights/codec"
	"grove/weights/tensor"
)

// The quantised types. A quad is 4 consecutive inputs; "by quads" means [quads][16 outputs][4]. Every type's packed block
// begins with its scales as the file codes them, then come the bits of its inputs, 32 after 32.

// Q8_0: the 32 int8 by quads.
var q8_0 = blockLayout{
	t:     tensor.Q8_0,
	parts: []blockPart{{codec.Q8_0Q, 2}, {codec.Q8_0Elems, 4}},
}

// Q4_0: 4 quads of bytes, quad j in the low nibbles and quad j+4 in the high ones: "nibbles by quads".
var q4_0 = blockLayout{
	t:     tensor.Q4_0,
	parts: []blockPart{{codec.Q4_0Q, 2}, {codec.Q4_0Elems / 2, 4}},
}

var q4_1 = blockLayout{
	t:     tensor.Q4_1,
	parts: []blockPart{{codec.Q4_1Q, 2}, {codec.Q4_1Elems / 2, 4}},
}

var iq4_NL = blockLayout{
	t:     tensor.IQ4_NL,
	parts: []blockPart{{codec.IQ4_NLQ, 2}, {codec.IQ4_NLElems / 2, 4}},
}

var iq4_XS = blockLayout{
	t:     tensor.IQ4_XS,
	parts: []blockPart{{4, 2}, {4, 4}, {codec.IQ4_XSElems / 2, 4}},
}

var mxfp4 = blockLayout{
	t:     tensor.MXFP4,
	parts: []blockPart{{codec.MXFP4Q, 1}, {codec.MXFP4Elems / 2, 4}},
}

// Q5_0: nibbles by quads, then a quad of bytes whose bit j is the fifth bit of quad j.
var q5_0 = blockLayout{
	t:         tensor.Q5_0,
	parts:     []blockPart{{codec.Q5_0High, 2}, {fiveBits, 4}},
	reordered: true,
}

var q5_1 = blockLayout{
	t:         tensor.Q5_1,
	parts:     []blockPart{{codec.Q5_1High, 2}, {fiveBits, 4}},
	reordered: true,
}

// Q2_K: of every 16 inputs one quad of bytes, quad j in the two bits at 2j.
var q2_K = blockLayout{
	t:         tensor.Q2_K,
	parts:     []blockPart{{4, 2}, {codec.Q2_KQ, 4}, {codec.Q2_KElems / 4, 4}},
	reordered: true,
}

// Q3_K: three quads of bytes. Their low 6 bits hold quads 0 and 1, 2 and 3, 4 and 5; the high 2 bits of the first
// and the second hold the low bits of quads 6 and 7, those of the third their third bits.
var q3_K = blockLayout{
	t:         tensor.Q3_K,
	parts:     []blockPart{{2, 2}, {codec.Q3_KD - codec.Q3_KScales, 4}, {codec.Q3_KElems * 3 / 8, 4}},
	reordered: true,
}

// Q4_K: nibbles by quads.
var q4_K = blockLayout{
	t:         tensor.Q4_K,
	parts:     []blockPart{{codec.Q4_KScales, 2}, {codec.Q4_KQ - codec.Q4_KScales, 4}, {codec.Q4_KElems / 2, 4}},
	reordered: true,
}

// Q5_K: every 32 as in Q5_0.
var q5_K = blockLayout{
	t:         tensor.Q5_K,
	parts:     []blockPart{{codec.Q5_KScales, 2}, {codec.Q5_KHigh - codec.Q5_KScales, 4}, {codec.Q5_KElems / kernel.QBlock * fiveBits, 4}},
	reordered: true,
}

// Q6_K: of every 16 inputs three quads of bytes, quads 0 to 2 in their low 6 bits, quad 3 in their high 2 bits, the
// lowest bits first.
var q6_K = blockLayout{
	t:         tensor.Q6_K,
	parts:     []blockPart{{2, 2}, {codec.Q6_KD - codec.Q6_KScales, 4}, {codec.Q6_KScales, 4}},
	reordered: true,
}

var blockLayouts = []blockLayout{
	q8_0, q4_0, q4_1, q5_0, q5_1, q2_K, q3_K, q4_K, q5_K, q6_K, iq4_NL, iq4_XS, mxfp4,
}

// fiveBits is the bytes of 32 inputs of five bits.
const fiveBits = kernel.QBlock * 5 / 8

const (
	oneBit4  = 0x01010101 // the lowest bits of the bytes of a word
	twoBits4 = 0x03030303
	nibbles4 = 0x0f0f0f0f

	oneBit8  = oneBit4<<32 | oneBit4
	twoBits8 = twoBits4<<32 | twoBits4
	nibbles8 = nibbles4<<32 | nibbles4
)

// word and putWord read and write a quad of bytes, double and putDouble two.
func word(b []byte) uint32         { return binary.LittleEndian.Uint32(b) }
func putWord(b []byte, v uint32)   { binary.LittleEndian.PutUint32(b, v) }
func double(b []byte) uint64       { return binary.LittleEndian.Uint64(b) }
func putDouble(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// or32 sets the bits of v in the word at the start of b.
func or32(b []byte, v uint32) { putWord(b, word(b)|v) }

// reorder brings a block of the file into the kernels' order. Scales that the file has elsewhere come first.
func (l *blockLayout) reorder(dst, src []byte) {
	switch l.t {
	case tensor.Q5_0:
		reorderQ5(dst, src, codec.Q5_0High)
	case tensor.Q5_1:
		reorderQ5(dst, src, codec.Q5_1High)
	case tensor.Q2_K:
		reorderQ2_K(dst, src)
	case tensor.Q3_K:
		reorderQ3_K(dst, src)
	case tensor.Q4_K:
		swapQ4_K(dst, src)
	case tensor.Q5_K:
		reorderQ5_K(dst, src)
	case tensor.Q6_K:
		reorderQ6_K(dst, src)
	}
}

// restore is the inverse of reorder.
func (l *blockLayout) restore(dst, src []byte) {
	switch l.t {
	case tensor.Q5_0:
		restoreQ5(dst, src, codec.Q5_0High)
	case tensor.Q5_1:
		restoreQ5(dst, src, codec.Q5_1High)
	case tensor.Q2_K:
		restoreQ2_K(dst, src)
	case tensor.Q3_K:
		restoreQ3_K(dst, src)
	case tensor.Q4_K:
		swapQ4_K(dst, src)
	case tensor.Q5_K:
		restoreQ5_K(dst, src)
	case tensor.Q6_K:
		restoreQ6_K(dst, src)
	}
}
