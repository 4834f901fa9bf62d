package tensor

// Q5_0 is blocks of 32 elements in 22 bytes, the low 4 bits as in Q4_0. Bit i of high, read as one little-endian
// number, is the fifth bit of element i, which is d * (bits - 16).
const Q5_0 Type = 6

const (
	q5_0D    = 0 // d, a half
	q5_0High = 2 // high, 4 bytes
	q5_0Q    = 6 // q, 16 bytes
)

// Packed: the scales, nibbles by quads as in Q4_0, then a quad of bytes whose bit j is the fifth bit of quad j.
var q5_0 = Codec{
	Type: Q5_0, Name: "Q5_0", Elems: 32, Bytes: 22,
	Unpack:   unpackQ5_0,
	Pack:     packQ5_0,
	Parts:    []Part{{q5_0High, 2}, {fiveBits, 4}},
	Reorder:  func(dst, src []byte) { reorderQ5(dst, src, q5_0High) },
	Restore:  func(dst, src []byte) { restoreQ5(dst, src, q5_0High) },
	Term:     termQ5_0,
	FileType: 8,
	Fallback: F16,
}

// fiveBits is the bytes of 32 elements of five bits.
const fiveBits = TermLen * 5 / 8

func unpackQ5_0(dst []float32, b []byte) {
	d := half(b[q5_0D:])
	for i := range dst {
		dst[i] = d * float32(int(q5(b[q5_0High:], i))-16)
	}
}

func packQ5_0(b []byte, src []float32) bool {
	ok := putHalf(b[q5_0D:], fitSymmetric(src, 16, 7))
	inv := inverse(half(b[q5_0D:]))
	put5(b[q5_0High:], func(i int) int { return clampRound(src[i]*inv, -16, 15) + 16 })
	return ok
}

func termQ5_0(t *Term, b []byte, _ int) {
	t.D = half(b[q5_0D:])
	t.nibbles(b[q5_0Q:])
	t.fifth(word(b[q5_0High:]))
	t.less(16)
}

// q5 returns the five bits of element i of a block of 32, whose high bits and then nibbles begin at b.
func q5(b []byte, i int) byte {
	return b[4+i%16]>>(i/16*4)&15 | b[i/8]>>(i%8)&1<<4
}

// put5 writes the five bits of each element of a block of 32, the inverse of [q5].
func put5(b []byte, bits func(i int) int) {
	var high uint32
	for i := range 16 {
		lower, upper := bits(i), bits(i+16)
		b[4+i] = byte(lower&15 | upper&15<<4)
		high |= uint32(lower>>4)<<i | uint32(upper>>4)<<(i+16)
	}
	putWord(b, high)
}

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

func restoreQ5(dst, src []byte, high int) {
	copy(dst[:high], src)
	copy(dst[high+4:], src[high:])
	spread, bits := word(src[len(dst)-4:]), uint32(0)
	for j := range 8 {
		bits |= (spread >> j & oneBit4) * 0x01020408 >> 24 & 15 << (4 * j)
	}
	putWord(dst[high:], bits)
}
