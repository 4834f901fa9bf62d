package tensor

// Q2_K is blocks of 256 elements in 84 bytes, sixteen sub-blocks of 16. Element 32*k+i of half h of 128 elements (k in
// 0..3, i in 0..31) is the two bits at 2k of byte 32h+i of q. The low nibble of a scale byte is the scale sc,
// the high one the minimum m of sub-block 8h + 2k + i/16; an element is (d*sc)*bits - (dmin*m).
const Q2_K Type = 10

const (
	q2_KScales = 0  // 16 bytes
	q2_KQ      = 16 // q, 64 bytes
	q2_KD      = 80 // d, a half; then dmin, a half
)

// Packed: the halves, the scale bytes, then of every 16 inputs one quad of bytes, quad j in the two bits at 2j.
var q2_K = Codec{
	Type: Q2_K, Name: "Q2_K", Elems: 256, Bytes: 84,
	Unpack:   unpackQ2_K,
	Pack:     packQ2_K,
	Parts:    []Part{{4, 2}, {16, 4}, {64, 4}},
	Reorder:  reorderQ2_K,
	Restore:  restoreQ2_K,
	Term:     termQ2_K,
	FileType: 10,
	Fallback: Q4_0,
}

func unpackQ2_K(dst []float32, b []byte) {
	d, dmin := half(b[q2_KD:]), half(b[q2_KD+2:])
	for s := range 16 {
		sc := b[q2_KScales+s]
		scale, low := d*float32(sc&15), float32(dmin*float32(sc>>4))
		at, shift := q2At(16 * s)
		for i, q := range b[q2_KQ+at:][:16] {
			dst[16*s+i] = float32(scale*float32(q>>shift&3)) - low
		}
	}
}

// q2At returns the byte, and the shift in it, of the two low bits of element n of a Q2_K or Q3_K block.
func q2At(n int) (at, shift int) { return n/128*32 + n%32, n / 32 % 4 * 2 }

// Super-blocks are packed alike: fit the scale of each sub-block, round the scales under the block's half, then
// round the elements under the scales as rounded.

func packQ2_K(b []byte, src []float32) bool {
	var scale, low [16]float32
	for s := range scale {
		scale[s], low[s] = fitAffine(src[16*s:][:16], 3, 15, false)
	}
	d, dmin, ok := putMaxima(b[q2_KD:], scale[:], low[:], 15)
	clear(b[q2_KQ:q2_KD])
	for s := range scale {
		sc, m := clampRound(scale[s]*inverse(d), 0, 15), clampRound(low[s]*inverse(dmin), 0, 15)
		b[q2_KScales+s] = byte(sc | m<<4)
		inv, base := inverse(d*float32(sc)), float32(dmin*float32(m))
		at, shift := q2At(16 * s)
		for i, x := range src[16*s:][:16] {
			b[q2_KQ+at+i] |= byte(clampRound((x+base)*inv, 0, 3) << shift)
		}
	}
	return ok
}

func termQ2_K(t *Term, b []byte, s int) {
	at, shift := q2At(TermLen * s)
	sc := b[q2_KScales+2*s:]
	t.offsets(b[q2_KD:], 0)
	t.Scale = [2]int32{int32(sc[0] & 15), int32(sc[1] & 15)}
	t.Offset = [2]int32{-int32(sc[0] >> 4), -int32(sc[1] >> 4)}
	t.or(b[q2_KQ+at:], shift, 3, 0)
}

// Where a reordered block keeps its scales and bits.
const (
	q2Scales = 4
	q2Bits   = q2Scales + 16
)

func reorderQ2_K(dst, src []byte) {
	copy(dst[:q2Scales], src[q2_KD:])
	copy(dst[q2Scales:], src[q2_KScales:q2_KQ])
	for s := range 16 {
		at, shift := q2At(16 * s)
		from := src[q2_KQ+at:][:16]
		putWord(dst[q2Bits+4*s:], joinQuads(double(from)>>shift&twoBits8|double(from[8:])>>shift&twoBits8<<4, 2))
	}
}

func restoreQ2_K(dst, src []byte) {
	clear(dst)
	copy(dst[q2_KD:], src[:q2Scales])
	copy(dst[q2_KScales:], src[q2Scales:q2Bits])
	for s := range 16 {
		at, shift := q2At(16 * s)
		bits := word(src[q2Bits+4*s:])
		for i := range 4 {
			or32(dst[q2_KQ+at+4*i:], bits>>(2*i)&twoBits4<<shift)
		}
	}
}
