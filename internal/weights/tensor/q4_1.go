package tensor

// Q4_1 is blocks of 32 elements in 20 bytes, nibbles as in Q4_0. An element is d*nibble + m.
const Q4_1 Type = 3

const (
	q4_1D = 0 // d, a half
	q4_1M = 2 // m, a half
	q4_1Q = 4 // q, 16 bytes
)

// Packed: the scales, then nibbles by quads, as Q4_0.
var q4_1 = Codec{
	Type: Q4_1, Name: "Q4_1", Elems: 32, Bytes: 20,
	Unpack:   unpackQ4_1,
	Pack:     packQ4_1,
	Parts:    []Part{{q4_1Q, 2}, {16, 4}},
	Term:     termQ4_1,
	FileType: 3,
	Fallback: F16,
}

func unpackQ4_1(dst []float32, b []byte) {
	d, m := half(b[q4_1D:]), half(b[q4_1M:])
	for i, q := range b[q4_1Q:][:16] {
		dst[i] = float32(d*float32(q&15)) + m
		dst[i+16] = float32(d*float32(q>>4)) + m
	}
}

func packQ4_1(b []byte, src []float32) bool {
	d, m, ok := packAffine(b[q4_1D:], src, 15)
	inv := inverse(d)
	for i := range 16 {
		b[q4_1Q+i] = byte(clampRound((src[i]-m)*inv, 0, 15) | clampRound((src[i+16]-m)*inv, 0, 15)<<4)
	}
	return ok
}

func termQ4_1(t *Term, b []byte, _ int) {
	t.offsets(b[q4_1D:], 1)
	t.nibbles(b[q4_1Q:])
}
