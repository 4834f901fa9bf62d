package matmul

import (
	"grove/internal/kernel"
	"grove/weights/codec"
)

// How blocks of the file become blocks in the kernels' order, and back.

// reorderQ5 moves the fifth bits of a Q5_0 or Q5_1 block, which begin at high, behind the nibbles and spreads them.
func reorderQ5(dst, src []byte, high int) {
	copy(dst[:high], src)
	copy(dst[high:], src[high+4:])
	spread := uint64(0)
	for i, bits := range src[high : high+4] {
		// Seven bits become the lowest of seven bytes: no two terms of the product meet. The eighth would.
		bits := uint64(bits)
		spread |= (bits&0x7f*0x0002040810204081&oneBit8 | bits>>7<<56) << (2 * i)
	}
	putWord(dst[len(dst)-4:], joinQuads(spread, 1))
}

// joinQuads returns the first of two quads of bytes with the second on top of it, shifted.
func joinQuads(two uint64, shift int) uint32 { return uint32(two) | uint32(two>>32)<<shift }

func restoreQ5(dst, src []byte, high int) {
	copy(dst[:high], src)
	copy(dst[high+4:], src[high:])
	spread, bits := word(src[len(dst)-4:]), uint32(0)
	for j := range 8 {
		bits |= (spread >> j & oneBit4) * 0x01020408 >> 24 & 15 << (4 * j)
	}
	putWord(dst[high:], bits)
}

// Where reordered blocks keep the bits of their inputs.
const (
	q2Scales = 4
	q2Bits   = q2Scales + codec.Q2_KQ
	q3Scales = 2
	q3Bits   = q3Scales + codec.Q3_KD - codec.Q3_KScales
	q5Bits   = codec.Q5_KHigh
)

// reorderQ2_K puts the quads of each 16 inputs together.
func reorderQ2_K(dst, src []byte) {
	copy(dst[:q2Scales], src[codec.Q2_KD:])
	copy(dst[q2Scales:], src[codec.Q2_KScales:codec.Q2_KQ])
	for s := range codec.Q2_KElems / 16 {
		at, shift := q2At(16 * s)
		from := src[codec.Q2_KQ+at:][:16]
		putWord(dst[q2Bits+4*s:], joinQuads(double(from)>>shift&twoBits8|double(from[8:])>>shift&twoBits8<<4, 2))
	}
}

func restoreQ2_K(dst, src []byte) {
	clear(dst)
	copy(dst[codec.Q2_KD:], src[:q2Scales])
	copy(dst[codec.Q2_KScales:], src[q2Scales:q2Bits])
	for s := range codec.Q2_KElems / 16 {
		at, shift := q2At(16 * s)
		bits := word(src[q2Bits+4*s:])
		for i := range 4 {
			or32(dst[codec.Q2_KQ+at+4*i:], bits>>(2*i)&twoBits4<<shift)
		}
	}
}

// q2At returns where the file keeps the two low bits of element n of a Q2_K or Q3_K block.
func q2At(n int) (at, shift int) {
	return n/128*kernel.QBlock + n%kernel.QBlock, n / kernel.QBlock % 4 * 2
}

const (
	threeBits4 = 0x07070707 // the low 3 bits of the bytes of a word
	thirdBit4  = 0x04040404
)

// reorderQ3_K puts the bits of each 32 inputs together.
func reorderQ3_K(dst, src []byte) {
	copy(dst[:q3Scales], src[codec.Q3_KD:])
	copy(dst[q3Scales:], src[codec.Q3_KScales:codec.Q3_KD])
	for s := range codec.Q3_KElems / kernel.QBlock {
		at, shift := q2At(kernel.QBlock * s)
		low, high := src[codec.Q3_KQ+at:][:32], src[codec.Q3_KHigh:][:32]
		var quads [4]uint64 // two of three bits each
		for i := range quads {
			quads[i] = double(low[8*i:])>>shift&twoBits8 | double(high[8*i:])>>s&oneBit8<<2
		}
		to, last := dst[q3Bits+12*s:][:12], quads[3]
		putWord(to, joinQuads(quads[0], 3)|uint32(last)&twoBits4<<6)
		putWord(to[4:], joinQuads(quads[1], 3)|uint32(last>>32)&twoBits4<<6)
		putWord(to[8:], joinQuads(quads[2], 3)|joinQuads(last>>2&oneBit8, 1)<<6)
	}
}

func restoreQ3_K(dst, src []byte) {
	clear(dst)
	copy(dst[codec.Q3_KD:], src[:q3Scales])
	copy(dst[codec.Q3_KScales:], src[q3Scales:q3Bits])
	for s := range codec.Q3_KElems / kernel.QBlock {
		from := src[q3Bits+12*s:]
		a, b, c := word(from), word(from[4:]), word(from[8:])
		quad := [8]uint32{
			a & threeBits4, a >> 3 & threeBits4, b & threeBits4, b >> 3 & threeBits4, c & threeBits4, c >> 3 & threeBits4,
			a>>6&twoBits4 | c>>4&thirdBit4, b>>6&twoBits4 | c>>5&thirdBit4,
		}
		at, shift := q2At(kernel.QBlock * s)
		for i, q := range quad {
			or32(dst[codec.Q3_KQ+at+4*i:], q&twoBits4<<shift)
			or32(dst[codec.Q3_KHigh+4*i:], q>>2&oneBit4<<s)
		}
	}
}

// reorderQ5_K brings the nibbles of each sub-block together as swapQ4_K does, and its fifth bits as in Q5_0.
func reorderQ5_K(dst, src []byte) {
	copy(dst[:q5Bits], src)
	for s := range codec.Q5_KElems / kernel.QBlock {
		high, from := src[codec.Q5_KHigh:][:kernel.QBlock], src[codec.Q5_KQ+s/2*kernel.QBlock:][:kernel.QBlock]
		to, spread, shift := dst[q5Bits+fiveBits*s:][:fiveBits], uint64(0), s%2*4
		for i := range 4 {
			spread |= double(high[8*i:]) >> s & oneBit8 << (2 * i)
		}
		for at := 0; at < 16; at += 8 {
			putDouble(to[at:], double(from[at:])>>shift&nibbles8|double(from[at+16:])>>shift&nibbles8<<4)
		}
		putWord(to[16:], joinQuads(spread, 1))
	}
}

func restoreQ5_K(dst, src []byte) {
	clear(dst)
	copy(dst, src[:q5Bits])
	for s := range codec.Q5_KElems / kernel.QBlock {
		from := src[q5Bits+fiveBits*s:]
		spread := word(from[16:])
		for j := range 8 {
			or32(dst[codec.Q5_KHigh+4*j:], spread>>j&oneBit4<<s)
		}
		to := dst[codec.Q5_KQ+s/2*kernel.QBlock:]
		for at := 0; at < 16; at += 4 {
			own := word(from[at:])
			or32(to[at:], own&nibbles4<<(s%2*4))
			or32(to[at+16:], own>>4&nibbles4<<(s%2*4))
		}
	}
}

// swapQ4_K brings the nibbles of each sub-block together: of the two quads of words a, b that hold
// sub-blocks 2p and 2p+1 in their low and high nibbles, it makes one for each of these. It is its own
// inverse.
func swapQ4_K(dst, src []byte) {
	copy(dst[:codec.Q4_KQ], src)
	for p := codec.Q4_KQ; p < codec.Q4_KBytes; p += kernel.QBlock {
		for at := p; at < p+16; at += 8 {
			a, b := double(src[at:]), double(src[at+16:])
			putDouble(dst[at:], a&nibbles8|b&nibbles8<<4)
			putDouble(dst[at+16:], a>>4&nibbles8|b&^nibbles8)
		}
	}
}

// Where a reordered block of Q6_K keeps its parts.
const (
	q6Scales = 2
	q6Bits   = q6Scales + codec.Q6_KD - codec.Q6_KScales
)

// reorderQ6_K puts the 16 elements of each scale together: three words of quads, the fourth on top of them.
func reorderQ6_K(dst, src []byte) {
	copy(dst, src[codec.Q6_KD:])
	copy(dst[q6Scales:], src[codec.Q6_KScales:codec.Q6_KD])
	for s := range codec.Q6_KElems / 16 {
		low, ls, high, hs := q6At(16 * s)
		from, top, to := src[low:][:16], src[high:][:16], dst[q6Bits+12*s:][:12]
		quad := func(i int) uint32 {
			return word(from[4*i:])>>ls&nibbles4 | word(top[4*i:])>>hs&twoBits4<<4
		}
		last := quad(3)
		putWord(to, quad(0)|last&twoBits4<<6)
		putWord(to[4:], quad(1)|last>>2&twoBits4<<6)
		putWord(to[8:], quad(2)|last>>4&twoBits4<<6)
	}
}

func restoreQ6_K(dst, src []byte) {
	clear(dst[:codec.Q6_KScales])
	copy(dst[codec.Q6_KD:], src[:q6Scales])
	copy(dst[codec.Q6_KScales:], src[q6Scales:q6Bits])
	for s := range codec.Q6_KElems / 16 {
		low, ls, high, hs := q6At(16 * s)
		from, last := src[q6Bits+12*s:][:12], uint32(0)
		for i := range 4 {
			quad := last
			if i < 3 {
				quad = word(from[4*i:])
				last |= quad >> 6 & twoBits4 << (2 * i)
			}
			or32(dst[low+4*i:], quad&nibbles4<<ls)
			or32(dst[high+4*i:], quad>>4&twoBits4<<hs)
		}
	}
}

// q6At returns where the file keeps the low 4 and the high 2 bits of element n of a Q6_K block.
func q6At(n int) (low, lowShift, high, highShift int) {
	h, k, i := n/128, n/32%4, n%32
	return codec.Q6_KLow + 64*h + 32*(k%2) + i, 4 * (k / 2), codec.Q6_KHigh + 32*h + i, 2 * k
}
