package kernel

import (
	"encoding/binary"

	"grove/quant"
	"grove/tensor"
)

// The quantised types. A quad is 4 consecutive inputs; "by quads" means [quads][16 outputs][4].

// Packed Q8_0: 16 scales, then the 32 int8 by quads.
var q8_0 = blockLayout{
	t:     tensor.Q8_0,
	parts: []blockPart{{quant.Q8_0Q, 2}, {quant.Q8_0Elems, 4}},
}

// Packed Q4_0: 16 scales, then 4 quads of bytes, quad j in the low nibbles and quad j+4 in the high ones.
var q4_0 = blockLayout{
	t:     tensor.Q4_0,
	parts: []blockPart{{quant.Q4_0Q, 2}, {quant.Q4_0Elems / 2, 4}},
}

// Packed Q4_K: 16 d, 16 dmin, 12 times 16 bytes of scales and minima as the file codes them, then
// each sub-block of 32 as in Q4_0.
var q4_K = blockLayout{
	t:         tensor.Q4_K,
	parts:     []blockPart{{quant.Q4_KScales, 2}, {quant.Q4_KQ - quant.Q4_KScales, 4}, {quant.Q4_KElems / 2, 4}},
	reordered: true,
}

// Packed Q6_K: 16 d, 16 times 16 scales, then each sub-block of 16 as three quads of bytes: quads 0 to 2
// in their low 6 bits, quad 3 in their high 2 bits, the lowest bits first.
var q6_K = blockLayout{
	t:         tensor.Q6_K,
	parts:     []blockPart{{2, 2}, {quant.Q6_KD - quant.Q6_KScales, 4}, {quant.Q6_KScales, 4}},
	reordered: true,
}

// swapQ4_K brings the nibbles of each sub-block together: of the two quads of words a, b that hold
// sub-blocks 2p and 2p+1 in their low and high nibbles, it makes one for each of these. It is its own
// inverse.
func swapQ4_K(dst, src []byte) {
	copy(dst[:quant.Q4_KQ], src)
	for p := quant.Q4_KQ; p < quant.Q4_KBytes; p += QBlock {
		for at := p; at < p+16; at += 4 {
			a, b := binary.LittleEndian.Uint32(src[at:]), binary.LittleEndian.Uint32(src[at+16:])
			binary.LittleEndian.PutUint32(dst[at:], a&nibbles4|b&nibbles4<<4)
			binary.LittleEndian.PutUint32(dst[at+16:], a>>4&nibbles4|b&^nibbles4)
		}
	}
}

// Where a reordered block of Q6_K keeps its parts.
const (
	q6Scales = 2
	q6Bits   = q6Scales + quant.Q6_KD - quant.Q6_KScales
)

const (
	nibbles4 = 0x0f0f0f0f // the low nibbles of a word
	twoBits4 = 0x03030303 // the low 2 bits of its bytes
)

// reorderQ6_K puts the 16 elements of each scale together: three words of quads, the fourth on top of them.
func reorderQ6_K(dst, src []byte) {
	copy(dst, src[quant.Q6_KD:])
	copy(dst[q6Scales:], src[quant.Q6_KScales:quant.Q6_KD])
	for s := range quant.Q6_KElems / 16 {
		low, ls, high, hs := q6At(16 * s)
		from, top, to := src[low:][:16], src[high:][:16], dst[q6Bits+12*s:][:12]
		quad := func(i int) uint32 {
			return binary.LittleEndian.Uint32(from[4*i:])>>ls&nibbles4 | binary.LittleEndian.Uint32(top[4*i:])>>hs&twoBits4<<4
		}
		last := quad(3)
		binary.LittleEndian.PutUint32(to, quad(0)|last&twoBits4<<6)
		binary.LittleEndian.PutUint32(to[4:], quad(1)|last>>2&twoBits4<<6)
		binary.LittleEndian.PutUint32(to[8:], quad(2)|last>>4&twoBits4<<6)
	}
}

func restoreQ6_K(dst, src []byte) {
	clear(dst[:quant.Q6_KScales])
	copy(dst[quant.Q6_KD:], src[:q6Scales])
	copy(dst[quant.Q6_KScales:], src[q6Scales:q6Bits])
	for s := range quant.Q6_KElems / 16 {
		low, ls, high, hs := q6At(16 * s)
		from, last := src[q6Bits+12*s:][:12], uint32(0)
		for i := range 4 {
			quad := last
			if i < 3 {
				quad = binary.LittleEndian.Uint32(from[4*i:])
				last |= quad >> 6 & twoBits4 << (2 * i)
			}
			or32(dst[low+4*i:], quad&nibbles4<<ls)
			or32(dst[high+4*i:], quad>>4&twoBits4<<hs)
		}
	}
}

// or32 sets the bits of v in the word at the start of b.
func or32(b []byte, v uint32) {
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)|v)
}

// q6At returns where the file keeps the low 4 and the high 2 bits of element n of a Q6_K block.
func q6At(n int) (low, lowShift, high, highShift int) {
	h, k, i := n/128, n/32%4, n%32
	return quant.Q6_KLow + 64*h + 32*(k%2) + i, 4 * (k / 2), quant.Q6_KHigh + 32*h + i, 2 * k
}
