package codec

// A Q2_K block: 256 elements in 84 bytes, sixteen sub-blocks of 16. Element 32*k+i of half h of 128 elements (k in
// 0..3, i in 0..31) is the two bits at 2k of byte 32h+i of q. The low nibble of a scale byte is the scale sc,
// the high one the minimum m of sub-block 8h + 2k + i/16; an element is (d*sc)*bits - (dmin*m).
const (
	Q2_KElems  = 256
	Q2_KBytes  = 84
	Q2_KScales = 0  // 16 bytes
	Q2_KQ      = 16 // q, 64 bytes
	Q2_KD      = 80 // d, a half
	Q2_KMin    = 82 // dmin, a half
)

// A Q3_K block: 256 elements in 110 bytes, sixteen sub-blocks as in Q2_K. The low two bits lie as there; the third
// bit of element 32*k+i of half h is bit 4h+k of byte i of high. With the scale from [Q3KScale], an
// element is (d*scale)*(bits - 4).
const (
	Q3_KElems  = 256
	Q3_KBytes  = 110
	Q3_KHigh   = 0   // high, 32 bytes
	Q3_KQ      = 32  // q, 64 bytes
	Q3_KScales = 96  // 12 bytes: sixteen scales of 6 bits
	Q3_KD      = 108 // d, a half
)

// A Q4_K block: 256 elements in 144 bytes, eight sub-blocks of 32. Bytes 32p to 32p+31 of q hold
// sub-block 2p in their low nibbles and 2p+1 in their high ones. With sc and m of the sub-block from
// [Q4KScale], an element is (d*sc)*nibble - (dmin*m).
const (
	Q4_KElems  = 256
	Q4_KBytes  = 144
	Q4_KD      = 0  // d, a half
	Q4_KMin    = 2  // dmin, a half
	Q4_KScales = 4  // 12 bytes: eight scales and eight minima of 6 bits
	Q4_KQ      = 16 // q, 128 bytes
)

// A Q5_K block: 256 elements in 176 bytes. All is as in Q4_K but for a fifth bit: that of element i of
// sub-block s is bit s of byte i of high.
const (
	Q5_KElems  = 256
	Q5_KBytes  = 176
	Q5_KD      = 0  // d, a half
	Q5_KMin    = 2  // dmin, a half
	Q5_KScales = 4  // 12 bytes, as in Q4_K
	Q5_KHigh   = 16 // high, 32 bytes
	Q5_KQ      = 48 // q, 128 bytes
)

// A Q6_K block: 256 elements in 210 bytes, sixteen sub-blocks of 16 with a signed scale each. The
// two halves of 128 elements are laid out alike: element 32*k+i of half h (k in 0..3, i in 0..31) has
// its low 4 bits in byte 64h + 32*(k%2) + i of the low part, the low nibble for k < 2, and its high 2
// bits in byte 32h + i of the high part, shifted by 2k. It is (d*scale)*(bits - 32), with
// scale number 8h + 2k + i/16.
const (
	Q6_KElems  = 256
	Q6_KBytes  = 210
	Q6_KLow    = 0   // 128 bytes
	Q6_KHigh   = 128 // 64 bytes
	Q6_KScales = 192 // 16 int8
	Q6_KD      = 208 // d, a half
)

// Q3KScale returns the scale, -32 to 31, of sub-block j (0 to 15) from the 12 scale bytes of a Q3_K block.
// Of the scale plus 32, the low 4 bits are a nibble of bytes 0-7, the low nibbles coming first, and the
// high 2 bits lie at 2*(j/4) in byte 8 + j%4.
func Q3KScale(scales []byte, j int) int8 {
	return int8(scales[j%8]>>(j/8*4)&15|scales[8+j%4]>>(j/4*2)&3<<4) - 32
}

// Q4KScale returns the scale and the minimum, 0 to 63 each, of sub-block j (0 to 7) from the 12
// scale bytes of a Q4_K or Q5_K block. The first four of each sit in the low 6 bits of bytes 0-3 and 4-7; the
// last four have their low 4 bits in bytes 8-11 and their high 2 bits on top of the first ones.
func Q4KScale(scales []byte, j int) (sc, m uint8) {
	if j < 4 {
		return scales[j] & 63, scales[j+4] & 63
	}
	return scales[j+4]&15 | scales[j-4]>>6<<4, scales[j+4]>>4 | scales[j]>>6<<4
}

// putQ4KScales is the inverse of [Q4KScale] for all eight sub-blocks.
func putQ4KScales(scales []byte, sc, m *[8]uint8) {
	for j := range 4 {
		scales[j] = sc[j] | sc[j+4]>>4<<6
		scales[j+4] = m[j] | m[j+4]>>4<<6
		scales[j+8] = sc[j+4]&15 | m[j+4]<<4
	}
}

func unpackQ2_K(dst []float32, b []byte) {
	d, dmin := half(b[Q2_KD:]), half(b[Q2_KMin:])
	for s := range 16 {
		sc := b[Q2_KScales+s]
		scale, low := d*float32(sc&15), float32(dmin*float32(sc>>4))
		at, shift := q2At(16 * s)
		for i, q := range b[Q2_KQ+at:][:16] {
			dst[16*s+i] = float32(scale*float32(q>>shift&3)) - low
		}
	}
}

func unpackQ3_K(dst []float32, b []byte) {
	d := half(b[Q3_KD:])
	for s := range 16 {
		scale := d * float32(Q3KScale(b[Q3_KScales:], s))
		at, shift := q2At(16 * s)
		for i, q := range b[Q3_KQ+at:][:16] {
			high := b[Q3_KHigh+(at+i)%32] >> (s / 2) & 1
			dst[16*s+i] = scale * float32(int(q>>shift&3|high<<2)-4)
		}
	}
}

// q2At returns the byte, and the shift in it, of the two low bits of element n of a Q2_K or Q3_K block.
func q2At(n int) (at, shift int) { return n/128*32 + n%32, n / 32 % 4 * 2 }

func unpackQ4_K(dst []float32, b []byte) {
	d, dmin := half(b[Q4_KD:]), half(b[Q4_KMin:])
	for j := range 8 {
		sc, m := Q4KScale(b[Q4_KScales:Q4_KQ], j)
		scale, low := d*float32(sc), float32(dmin*float32(m))
		shift := 4 * (j % 2)
		for i, q := range b[Q4_KQ+j/2*32:][:32] {
			dst[32*j+i] = float32(scale*float32(q>>shift&15)) - low
		}
	}
}

func unpackQ5_K(dst []float32, b []byte) {
	d, dmin := half(b[Q5_KD:]), half(b[Q5_KMin:])
	for j := range 8 {
		sc, m := Q4KScale(b[Q5_KScales:], j)
		scale, low := d*float32(sc), float32(dmin*float32(m))
		for i, q := range b[Q5_KQ+j/2*32:][:32] {
			high := b[Q5_KHigh+i] >> j & 1
			dst[32*j+i] = float32(scale*float32(q>>(j%2*4)&15|high<<4)) - low
		}
	}
}

func unpackQ6_K(dst []float32, b []byte) {
	d := half(b[Q6_KD:])
	for s := range 16 {
		scale := d * float32(int8(b[Q6_KScales+s]))
		for i := range 16 {
			dst[16*s+i] = scale * float32(q6(b, 16*s+i))
		}
	}
}

// q6At returns where element n of a Q6_K block keeps its low 4 and its high 2 bits.
func q6At(n int) (low, lowShift, high, highShift int) {
	h, k, i := n/128, n/32%4, n%32
	return Q6_KLow + 64*h + 32*(k%2) + i, 4 * (k / 2), Q6_KHigh + 32*h + i, 2 * k
}

// q6 returns the signed quant, -32 to 31, of element n of a Q6_K block.
func q6(b []byte, n int) int {
	low, ls, high, hs := q6At(n)
	return int(b[low]>>ls&15|b[high]>>hs&3<<4) - 32
}
