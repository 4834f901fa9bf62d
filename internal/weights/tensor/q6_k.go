package tensor

// Q6_K is blocks of 256 elements in 210 bytes, sixteen sub-blocks of 16 with a signed scale each. The
// two halves of 128 elements are laid out alike: element 32*k+i of half h (k in 0..3, i in 0..31) has
// its low 4 bits in byte 64h + 32*(k%2) + i of the low part, the low nibble for k < 2, and its high 2
// bits in byte 32h + i of the high part, shifted by 2k. It is (d*scale)*(bits - 32), with
// scale number 8h + 2k + i/16.
const Q6_K Type = 14

const (
	q6_KLow    = 0   // 128 bytes
	q6_KHigh   = 128 // 64 bytes
	q6_KScales = 192 // 16 int8
	q6_KD      = 208 // d, a half
)

// Packed: the half, the scales, then of every 16 inputs three quads of bytes, quads 0 to 2 in their low 6 bits, quad 3 in
// their high 2 bits, the lowest bits first.
var q6_K = Codec{
	Type: Q6_K, Name: "Q6_K", Elems: 256, Bytes: 210,
	Unpack:   unpackQ6_K,
	Pack:     packQ6_K,
	Parts:    []Part{{2, 2}, {16, 4}, {192, 4}},
	Reorder:  reorderQ6_K,
	Restore:  restoreQ6_K,
	Term:     termQ6_K,
	FileType: 18,
	Fallback: Q8_0,
}

// q6At returns where element n of a Q6_K block keeps its low 4 and its high 2 bits.
func q6At(n int) (low, lowShift, high, highShift int) {
	h, k, i := n/128, n/32%4, n%32
	return q6_KLow + 64*h + 32*(k%2) + i, 4 * (k / 2), q6_KHigh + 32*h + i, 2 * k
}

// q6 returns the integer, -32 to 31, of element n of a Q6_K block.
func q6(b []byte, n int) int {
	low, ls, high, hs := q6At(n)
	return int(b[low]>>ls&15|b[high]>>hs&3<<4) - 32
}

func unpackQ6_K(dst []float32, b []byte) {
	d := half(b[q6_KD:])
	for s := range 16 {
		scale := d * float32(int8(b[q6_KScales+s]))
		for i := range 16 {
			dst[16*s+i] = scale * float32(q6(b, 16*s+i))
		}
	}
}

func packQ6_K(b []byte, src []float32) bool {
	var scale [16]float32
	for s := range scale {
		scale[s] = fitSymmetric(src[16*s:][:16], 32, 5)
	}
	ok := putHalf(b[q6_KD:], peakOf(scale[:])/-128) // the peak becomes -128, the longer side of int8
	d := half(b[q6_KD:])
	clear(b[:q6_KScales])
	for s := range scale {
		sc := clampRound(scale[s]*inverse(d), -128, 127)
		b[q6_KScales+s] = byte(int8(sc))
		inv := inverse(d * float32(sc))
		at, ls, high, hs := q6At(16 * s)
		for i, x := range src[16*s:][:16] {
			q := clampRound(x*inv, -32, 31) + 32
			b[at+i] |= byte(q&15) << ls
			b[high+i] |= byte(q>>4) << hs
		}
	}
	return ok
}

func termQ6_K(t *Term, b []byte, s int) {
	sc := b[q6_KScales+2*s:]
	low, ls, high, hs := q6At(TermLen * s)
	t.D = half(b[q6_KD:])
	t.Scale = [2]int32{int32(int8(sc[0])), int32(int8(sc[1]))}
	t.or(b[low:], ls, 15, 0)
	t.or(b[high:], hs, 3, 4)
	t.less(32)
}

// Where a reordered block keeps its scales and bits.
const (
	q6Scales = 2
	q6Bits   = q6Scales + 16
)

// reorderQ6_K puts the 16 elements of each scale together: three words of quads, the fourth on top of them.
func reorderQ6_K(dst, src []byte) {
	copy(dst, src[q6_KD:])
	copy(dst[q6Scales:], src[q6_KScales:q6_KD])
	for s := range 16 {
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
	clear(dst[:q6_KScales])
	copy(dst[q6_KD:], src[:q6Scales])
	copy(dst[q6_KScales:], src[q6Scales:q6Bits])
	for s := range 16 {
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
