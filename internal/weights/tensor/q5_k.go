package tensor

// Q5_K is blocks of 256 elements in 176 bytes. All is as in Q4_K but for a fifth bit: that of element i of
// sub-block s is bit s of byte i of high.
const Q5_K Type = 13

const (
	q5_KD      = 0  // d, a half; then dmin, a half
	q5_KScales = 4  // 12 bytes, as in Q4_K
	q5_KHigh   = 16 // high, 32 bytes
	q5_KQ      = 48 // q, 128 bytes
)

// Packed: the halves, the scale bytes, then every 32 inputs as in Q5_0.
var q5_K = Codec{
	Type: Q5_K, Name: "Q5_K", Elems: 256, Bytes: 176,
	Unpack:   unpackQ5_K,
	Pack:     packQ5_K,
	Parts:    []Part{{4, 2}, {12, 4}, {8 * fiveBits, 4}},
	Reorder:  reorderQ5_K,
	Restore:  restoreQ5_K,
	Term:     termQ5_K,
	FileType: 16,
	Fallback: Q5_1,
}

func unpackQ5_K(dst []float32, b []byte) {
	d, dmin := half(b[q5_KD:]), half(b[q5_KD+2:])
	for j := range 8 {
		sc, m := q4KScale(b[q5_KScales:], j)
		scale, low := d*float32(sc), float32(dmin*float32(m))
		for i, q := range b[q5_KQ+j/2*32:][:32] {
			high := b[q5_KHigh+i] >> j & 1
			dst[32*j+i] = float32(scale*float32(q>>(j%2*4)&15|high<<4)) - low
		}
	}
}

func packQ5_K(b []byte, src []float32) bool {
	return packNibbles(b[q5_KD:], src, 31, func(j, i, q int) {
		b[q5_KQ+j/2*32+i] |= byte(q & 15 << (j % 2 * 4))
		b[q5_KHigh+i] |= byte(q >> 4 << j)
	})
}

func termQ5_K(t *Term, b []byte, s int) {
	sc, m := q4KScale(b[q5_KScales:], s)
	t.offsets(b[q5_KD:], -int32(m))
	t.scales(int32(sc))
	t.or(b[q5_KQ+s/2*TermLen:], s%2*4, 15, 0)
	t.or(b[q5_KHigh:], s, 1, 4)
}

// q5Bits is where a reordered block keeps its bits.
const q5Bits = q5_KHigh

// reorderQ5_K brings the nibbles of each sub-block together as swapQ4_K does, and its fifth bits as in Q5_0.
func reorderQ5_K(dst, src []byte) {
	copy(dst[:q5Bits], src)
	for s := range 8 {
		high, from := src[q5_KHigh:][:TermLen], src[q5_KQ+s/2*TermLen:][:TermLen]
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
	for s := range 8 {
		from := src[q5Bits+fiveBits*s:]
		spread := word(from[16:])
		for j := range 8 {
			or32(dst[q5_KHigh+4*j:], spread>>j&oneBit4<<s)
		}
		to := dst[q5_KQ+s/2*TermLen:]
		for at := 0; at < 16; at += 4 {
			own := word(from[at:])
			or32(to[at:], own&nibbles4<<(s%2*4))
			or32(to[at+16:], own>>4&nibbles4<<(s%2*4))
		}
	}
}
