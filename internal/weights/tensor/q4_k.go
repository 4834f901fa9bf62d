package tensor

// Q4_K is blocks of 256 elements in 144 bytes, eight sub-blocks of 32. Bytes 32p to 32p+31 of q hold
// sub-block 2p in their low nibbles and 2p+1 in their high ones. With sc and m of the sub-block from
// q4KScale, an element is (d*sc)*nibble - (dmin*m).
const Q4_K Type = 12

const (
	q4_KD      = 0  // d, a half; then dmin, a half
	q4_KScales = 4  // 12 bytes: eight scales and eight minima of 6 bits
	q4_KQ      = 16 // q, 128 bytes
)

// Packed: the halves, the scale bytes, then of every 32 inputs nibbles by quads, as in Q4_0.
var q4_K = Codec{
	Type: Q4_K, Name: "Q4_K", Elems: 256, Bytes: 144,
	Unpack:   unpackQ4_K,
	Pack:     packQ4_K,
	Parts:    []Part{{4, 2}, {12, 4}, {128, 4}},
	Reorder:  swapQ4_K,
	Restore:  swapQ4_K,
	Term:     termQ4_K,
	FileType: 14,
	Fallback: Q5_0,
}

// q4KScale returns the scale and the minimum, 0 to 63 each, of sub-block j (0 to 7) from the 12
// scale bytes of a Q4_K or Q5_K block. The first four of each sit in the low 6 bits of bytes 0-3 and 4-7; the
// last four have their low 4 bits in bytes 8-11 and their high 2 bits on top of the first ones.
func q4KScale(scales []byte, j int) (sc, m uint8) {
	if j < 4 {
		return scales[j] & 63, scales[j+4] & 63
	}
	return scales[j+4]&15 | scales[j-4]>>6<<4, scales[j+4]>>4 | scales[j]>>6<<4
}

// putQ4KScales is the inverse of [q4KScale] for all eight sub-blocks.
func putQ4KScales(scales []byte, sc, m *[8]uint8) {
	for j := range 4 {
		scales[j] = sc[j] | sc[j+4]>>4<<6
		scales[j+4] = m[j] | m[j+4]>>4<<6
		scales[j+8] = sc[j+4]&15 | m[j+4]<<4
	}
}

func unpackQ4_K(dst []float32, b []byte) {
	d, dmin := half(b[q4_KD:]), half(b[q4_KD+2:])
	for j := range 8 {
		sc, m := q4KScale(b[q4_KScales:], j)
		scale, low := d*float32(sc), float32(dmin*float32(m))
		shift := 4 * (j % 2)
		for i, q := range b[q4_KQ+j/2*32:][:32] {
			dst[32*j+i] = float32(scale*float32(q>>shift&15)) - low
		}
	}
}

func packQ4_K(b []byte, src []float32) bool {
	return packNibbles(b[q4_KD:], src, 15, func(j, i, q int) { b[q4_KQ+j/2*32+i] |= byte(q << (j % 2 * 4)) })
}

// packNibbles writes the halves and scales of a Q4_K or Q5_K block and calls put, the rest being clear, for
// the integers of each sub-block.
func packNibbles(b []byte, src []float32, top int, put func(j, i, q int)) bool {
	var scale, low [8]float32
	for j := range scale {
		scale[j], low[j] = fitAffine(src[32*j:][:32], top, 7, false)
	}
	d, dmin, ok := putMaxima(b, scale[:], low[:], 63)
	var sc, m [8]uint8
	for j := range sc {
		sc[j] = uint8(clampRound(scale[j]*inverse(d), 0, 63))
		m[j] = uint8(clampRound(low[j]*inverse(dmin), 0, 63))
	}
	putQ4KScales(b[q4_KScales:], &sc, &m)
	clear(b[q4_KQ:])
	for j := range sc {
		inv, base := inverse(d*float32(sc[j])), float32(dmin*float32(m[j]))
		for i, x := range src[32*j:][:32] {
			put(j, i, clampRound((x+base)*inv, 0, top))
		}
	}
	return ok
}

func termQ4_K(t *Term, b []byte, s int) {
	sc, m := q4KScale(b[q4_KScales:], s)
	t.offsets(b[q4_KD:], -int32(m))
	t.scales(int32(sc))
	t.or(b[q4_KQ+s/2*TermLen:], s%2*4, 15, 0)
}

// swapQ4_K brings the nibbles of each sub-block together: of the two quads of words a, b that hold
// sub-blocks 2p and 2p+1 in their low and high nibbles, it makes one for each of these. It is its own
// inverse.
func swapQ4_K(dst, src []byte) {
	copy(dst[:q4_KQ], src)
	for p := q4_KQ; p < q4_KQ+128; p += TermLen {
		for at := p; at < p+16; at += 8 {
			a, b := double(src[at:]), double(src[at+16:])
			putDouble(dst[at:], a&nibbles8|b&nibbles8<<4)
			putDouble(dst[at+16:], a>>4&nibbles8|b&^nibbles8)
		}
	}
}
