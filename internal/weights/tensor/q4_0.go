package tensor

// Q4_0 is blocks of 32 elements in 18 bytes. The low nibble of byte i of q is element i, its high
// nibble element i+16; an element is d * (nibble - 8).
const Q4_0 Type = 2

const (
	q4_0D = 0 // d, a half
	q4_0Q = 2 // q, 16 bytes
)

// Packed: the scales, then "nibbles by quads": 4 quads of bytes, quad j in the low nibbles and quad j+4 in the high ones.
var q4_0 = Codec{
	Type: Q4_0, Name: "Q4_0", Elems: 32, Bytes: 18,
	Unpack:   unpackQ4_0,
	Pack:     packQ4_0,
	Parts:    []Part{{q4_0Q, 2}, {16, 4}},
	Term:     termQ4_0,
	FileType: 2,
	Fallback: F16,
}

func unpackQ4_0(dst []float32, b []byte) {
	d := half(b[q4_0D:])
	for i, q := range b[q4_0Q:][:16] {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

func packQ4_0(b []byte, src []float32) bool {
	d := peakOf(src) / -8 // the peak becomes -8, the longer side of the range
	inv := inverse(d)
	nibble := func(x float32) byte { return byte(min(15, int(float32(x*inv)+8.5))) }
	for i := range 16 {
		b[q4_0Q+i] = nibble(src[i]) | nibble(src[i+16])<<4
	}
	return putHalf(b[q4_0D:], d)
}

func termQ4_0(t *Term, b []byte, _ int) {
	t.D = half(b[q4_0D:])
	t.nibbles(b[q4_0Q:])
	t.less(8)
}
