package quant

// A Q8_0 block: 32 elements in 34 bytes. Element i is d * q[i].
const (
	Q8_0Elems = 32
	Q8_0Bytes = 34
	Q8_0D     = 0 // d, a half
	Q8_0Q     = 2 // q, 32 int8
)

// A Q4_0 block: 32 elements in 18 bytes. The low nibble of byte i of q is element i, its high
// nibble element i+16; an element is d * (nibble - 8).
const (
	Q4_0Elems = 32
	Q4_0Bytes = 18
	Q4_0D     = 0 // d, a half
	Q4_0Q     = 2 // q, 16 bytes
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

// Q4KScale returns the scale and the minimum, 0 to 63 each, of sub-block j (0 to 7) from the 12
// scale bytes of a Q4_K block. The first four of each sit in the low 6 bits of bytes 0-3 and 4-7; the
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

func unpackQ8_0(dst []float32, b []byte) {
	d := half(b[Q8_0D:])
	for i, q := range b[Q8_0Q:Q8_0Bytes] {
		dst[i] = d * float32(int8(q))
	}
}

func unpackQ4_0(dst []float32, b []byte) {
	d := half(b[Q4_0D:])
	for i, q := range b[Q4_0Q:Q4_0Bytes] {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

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
