package tensor

// Q3_K is blocks of 256 elements in 110 bytes, sixteen sub-blocks as in Q2_K. The low two bits lie as there; the third
// bit of element 32*k+i of half h is bit 4h+k of byte i of high. With the scale from q3KScale, an
// element is (d*scale)*(bits - 4).
const Q3_K Type = 11

const (
	q3_KHigh   = 0   // high, 32 bytes
	q3_KQ      = 32  // q, 64 bytes
	q3_KScales = 96  // 12 bytes: sixteen scales of 6 bits
	q3_KD      = 108 // d, a half
)

// Packed: the half, the scale bytes, then of every 32 inputs three quads of bytes. Their low 6 bits hold quads 0 and 1, 2 and
// 3, 4 and 5; the high 2 bits of the first and the second hold the low bits of quads 6 and 7, those of the third their
// third bits.
var q3_K = Codec{
	Type: Q3_K, Name: "Q3_K", Elems: 256, Bytes: 110,
	Unpack:   unpackQ3_K,
	Pack:     packQ3_K,
	Parts:    []Part{{2, 2}, {12, 4}, {96, 4}},
	Reorder:  reorderQ3_K,
	Restore:  restoreQ3_K,
	Term:     termQ3_K,
	FileType: 11,
	Fallback: Q4_0,
}

// q3KScale returns the scale, -32 to 31, of sub-block j (0 to 15) from the 12 scale bytes of a Q3_K block.
// Of the scale plus 32, the low 4 bits are a nibble of bytes 0-7, the low nibbles coming first, and the
// high 2 bits lie at 2*(j/4) in byte 8 + j%4.
func q3KScale(scales []byte, j int) int8 {
	return int8(scales[j%8]>>(j/8*4)&15|scales[8+j%4]>>(j/4*2)&3<<4) - 32
}

func unpackQ3_K(dst []float32, b []byte) {
	d := half(b[q3_KD:])
	for s := range 16 {
		scale := d * float32(q3KScale(b[q3_KScales:], s))
		at, shift := q2At(16 * s)
		for i, q := range b[q3_KQ+at:][:16] {
			high := b[q3_KHigh+(at+i)%32] >> (s / 2) & 1
			dst[16*s+i] = scale * float32(int(q>>shift&3|high<<2)-4)
		}
	}
}

func packQ3_K(b []byte, src []float32) bool {
	var scale [16]float32
	for s := range scale {
		scale[s] = fitSymmetric(src[16*s:][:16], 4, 13)
	}
	ok := putHalf(b[q3_KD:], peakOf(scale[:])/-32) // the peak becomes -32, the longer side of the range
	d := half(b[q3_KD:])
	clear(b[:q3_KD])
	for s := range scale {
		sc := clampRound(scale[s]*inverse(d), -32, 31)
		b[q3_KScales+s%8] |= byte((sc+32)&15) << (s / 8 * 4)
		b[q3_KScales+8+s%4] |= byte((sc+32)>>4) << (s / 4 * 2)
		inv := inverse(d * float32(sc))
		at, shift := q2At(16 * s)
		for i, x := range src[16*s:][:16] {
			q := clampRound(x*inv, -4, 3) + 4
			b[q3_KQ+at+i] |= byte(q&3) << shift
			b[q3_KHigh+(at+i)%32] |= byte(q>>2) << (s / 2)
		}
	}
	return ok
}

func termQ3_K(t *Term, b []byte, s int) {
	at, shift := q2At(TermLen * s)
	sc := b[q3_KScales:]
	t.D = half(b[q3_KD:])
	t.Scale = [2]int32{int32(q3KScale(sc, 2*s)), int32(q3KScale(sc, 2*s+1))}
	t.or(b[q3_KQ+at:], shift, 3, 0)
	t.or(b[q3_KHigh:], s, 1, 2)
	t.less(4)
}

// Where a reordered block keeps its scales and bits.
const (
	q3Scales = 2
	q3Bits   = q3Scales + 12
)

func reorderQ3_K(dst, src []byte) {
	copy(dst[:q3Scales], src[q3_KD:])
	copy(dst[q3Scales:], src[q3_KScales:q3_KD])
	for s := range 8 {
		at, shift := q2At(TermLen * s)
		low, high := src[q3_KQ+at:][:32], src[q3_KHigh:][:32]
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
	copy(dst[q3_KD:], src[:q3Scales])
	copy(dst[q3_KScales:], src[q3Scales:q3Bits])
	for s := range 8 {
		from := src[q3Bits+12*s:]
		a, b, c := word(from), word(from[4:]), word(from[8:])
		quad := [8]uint32{
			a & threeBits4, a >> 3 & threeBits4, b & threeBits4, b >> 3 & threeBits4, c & threeBits4, c >> 3 & threeBits4,
			a>>6&twoBits4 | c>>4&thirdBit4, b>>6&twoBits4 | c>>5&thirdBit4,
		}
		at, shift := q2At(TermLen * s)
		for i, q := range quad {
			or32(dst[q3_KQ+at+4*i:], q&twoBits4<<shift)
			or32(dst[q3_KHigh+4*i:], q>>2&oneBit4<<s)
		}
	}
}
