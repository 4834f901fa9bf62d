package tensor

import "encoding/binary"

// Functions and constants that the codecs of several types share.

const (
	oneBit4    = 0x01010101 // the lowest bits of the bytes of a word
	twoBits4   = 0x03030303
	threeBits4 = 0x07070707
	nibbles4   = 0x0f0f0f0f
	thirdBit4  = 0x04040404

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

// joinQuads returns the first of two quads of bytes with the second on top of it, shifted.
func joinQuads(two uint64, shift int) uint32 { return uint32(two) | uint32(two>>32)<<shift }

// half reads a scale.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

// putHalf writes a scale and reports whether a half can hold it.
func putHalf(b []byte, f float32) bool {
	h := F32ToF16(f)
	binary.LittleEndian.PutUint16(b, h)
	return h&0x7c00 != 0x7c00
}

// peakOf returns the element of largest magnitude with its sign, the first of equals.
func peakOf(x []float32) float32 {
	var peak, mag float32
	for _, v := range x {
		if a := max(v, -v); a > mag {
			peak, mag = v, a
		}
	}
	return peak
}

// inverse returns 1/d, or 0 where that is not finite: the scale of a block of zeros, or of values
// so small that its half is zero whatever the integers.
func inverse(d float32) float32 {
	if inv := 1 / d; inv-inv == 0 {
		return inv
	}
	return 0
}

// clampRound returns x rounded to the nearest integer, ties to even, within lo and hi, which are small.
func clampRound(x float32, lo, hi int) int {
	const rounder = 3 << 22
	return int(int32(clamp(x, float32(lo), float32(hi)) + rounder - rounder))
}

// packAffine writes the scale d and the offset m of a block as two halves and returns the values as rounded.
func packAffine(b []byte, src []float32, top int) (d, m float32, ok bool) {
	scale, low := fitAffine(src, top, 7, true)
	ok = putHalf(b, scale)
	ok = putHalf(b[2:], -low) && ok
	return half(b), half(b[2:]), ok
}

// putMaxima writes the halves under which the largest scale and the largest low become top, and returns their values
// as rounded.
func putMaxima(b []byte, scale, low []float32, top float32) (d, dmin float32, ok bool) {
	ok = putHalf(b, maxOf(scale)/top)
	ok = putHalf(b[2:], maxOf(low)/top) && ok
	return half(b), half(b[2:]), ok
}

func maxOf(x []float32) float32 {
	m := x[0]
	for _, v := range x {
		m = max(m, v)
	}
	return m
}
