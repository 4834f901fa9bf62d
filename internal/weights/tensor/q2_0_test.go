package tensor

// Q2_0 is blocks of 32 elements in 10 bytes. Element i is the two bits at 2*(i/8) of byte i%8 of q; it is
// d * (bits - 2).
const Q2_0 Type = 60

const (
	q2_0D = 0 // d, a half
	q2_0Q = 2 // q, 8 bytes
)

// Packed: the scales, then two quads of bytes, each with quads j, j+2, j+4 and j+6 in the bits at 0, 2, 4 and 6.
var q2_0 = Codec{
	Type: Q2_0, Name: "Q2_0", Elems: 32, Bytes: 10,
	Unpack:   unpackQ2_0,
	Pack:     packQ2_0,
	Parts:    []Part{{q2_0Q, 2}, {8, 4}},
	Term:     termQ2_0,
	FileType: 60,
	Fallback: F16,
}

func unpackQ2_0(dst []float32, b []byte) {
	d := half(b[q2_0D:])
	for i := range dst {
		dst[i] = d * float32(int(b[q2_0Q+i%8]>>(i/8*2)&3)-2)
	}
}

func packQ2_0(b []byte, src []float32) bool {
	ok := putHalf(b[q2_0D:], fitSymmetric(src, 2, 7))
	inv := inverse(half(b[q2_0D:]))
	clear(b[q2_0Q:])
	for i, x := range src {
		b[q2_0Q+i%8] |= byte(clampRound(x*inv, -2, 1)+2) << (i / 8 * 2)
	}
	return ok
}

func termQ2_0(t *Term, b []byte, _ int) {
	t.D = half(b[q2_0D:])
	for i := range t.Q {
		t.Q[i] = int8(b[q2_0Q+i%8]>>(i/8*2)&3) - 2
	}
}
