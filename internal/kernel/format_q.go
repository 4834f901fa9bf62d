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
	t:     tensor.Q4_K,
	parts: []blockPart{{quant.Q4_KScales, 2}, {quant.Q4_KQ - quant.Q4_KScales, 1}, {quant.Q4_KElems / 2, 4}},
}

// Packed Q6_K: 16 d, 16 times 16 scales, then each sub-block of 16 as three quads of bytes: quads 0 to 2
// in their low 6 bits, quad 3 in their high 2 bits, the lowest bits first.
var q6_K = blockLayout{
	t:     tensor.Q6_K,
	parts: []blockPart{{2, 2}, {quant.Q6_KD - quant.Q6_KScales, 1}, {quant.Q6_KScales, 4}},
}

// swapQ4_K brings the nibbles of each sub-block together: of the two quads of words a, b that hold
// sub-blocks 2p and 2p+1 in their low and high nibbles, it makes one for each of these. It is its own
// inverse.
func swapQ4_K(dst, src []byte) {
	const low = 0x0f0f0f0f
	copy(dst[:quant.Q4_KQ], src)
	for p := quant.Q4_KQ; p < quant.Q4_KBytes; p += QBlock {
		for at := p; at < p+16; at += 4 {
			a, b := binary.LittleEndian.Uint32(src[at:]), binary.LittleEndian.Uint32(src[at+16:])
			binary.LittleEndian.PutUint32(dst[at:], a&low|b&low<<4)
			binary.LittleEndian.PutUint32(dst[at+16:], a>>4&low|b&^low)
		}
	}
}

// Where a reordered block of Q6_K keeps its parts.
const (
	q6Scales = 2
	q6Bits   = q6Scales + quant.Q6_KD - quant.Q6_KScales
)

func reorderQ6_K(dst, src []byte) {
	copy(dst, src[quant.Q6_KD:])
	copy(dst[q6Scales:], src[quant.Q6_KScales:quant.Q6_KD])
	for s := range quant.Q6_KElems / 16 {
		to := dst[q6Bits+12*s:]
		var last uint32
		for quad := 3; quad >= 0; quad-- {
			low, ls, high, hs := q6At(16*s + 4*quad)
			v := binary.LittleEndian.Uint32(src[low:])>>ls&0x0f0f0f0f |
				binary.LittleEndian.Uint32(src[high:])>>hs&0x03030303<<4
			if quad == 3 {
				last = v
				continue
			}
			binary.LittleEndian.PutUint32(to[4*quad:], v|last>>(2*quad)&0x03030303<<6)
		}
	}
}

func restoreQ6_K(dst, src []byte) {
	clear(dst[:quant.Q6_KScales])
	copy(dst[quant.Q6_KD:], src[:q6Scales])
	copy(dst[quant.Q6_KScales:], src[q6Scales:q6Bits])
	for s := range quant.Q6_KElems / 16 {
		from := src[q6Bits+12*s:]
		var last uint32
		for quad := range 4 {
			v := last
			if quad < 3 {
				v = binary.LittleEndian.Uint32(from[4*quad:])
				last |= v >> 6 & 0x03030303 << (2 * quad)
			}
			low, ls, high, hs := q6At(16*s + 4*quad)
			or32(dst[low:], v&0x0f0f0f0f<<ls)
			or32(dst[high:], v>>4&0x03030303<<hs)
		}
	}
}

func or32(b []byte, v uint32) {
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)|v)
}

// q6At returns where the file keeps the low 4 and the high 2 bits of element n of a Q6_K block.
func q6At(n int) (low, lowShift, high, highShift int) {
	h, k, i := n/128, n/32%4, n%32
	return quant.Q6_KLow + 64*h + 32*(k%2) + i, 4 * (k / 2), quant.Q6_KHigh + 32*h + i, 2 * k
}
