package tensor

import "math"

// Q8_0 is blocks of 32 elements in 34 bytes. Element i is d * q[i].
const Q8_0 Type = 8

const (
	q8_0D = 0 // d, a half
	q8_0Q = 2 // q, 32 int8
)

// Packed: the scales, then the bytes by quads. A quad is 4 consecutive inputs; "by quads" means [quads][16 outputs][4].
var q8_0 = Codec{
	Type: Q8_0, Name: "Q8_0", Elems: 32, Bytes: 34,
	Unpack:    unpackQ8_0,
	Pack:      packQ8_0,
	Parts:     []Part{{q8_0Q, 2}, {32, 4}},
	Term:      termQ8_0,
	FullBytes: true,
	FileType:  7,
	Fallback:  F16,
}

func unpackQ8_0(dst []float32, b []byte) {
	d := half(b[q8_0D:])
	for i, q := range b[q8_0Q:][:32] {
		dst[i] = d * float32(int8(q))
	}
}

func packQ8_0(b []byte, src []float32) bool {
	d := float32(math.Abs(float64(peakOf(src)))) / 127
	inv := inverse(d)
	for i, x := range src {
		b[q8_0Q+i] = byte(int8(math.Round(float64(x * inv)))) // half away from zero, as C's roundf
	}
	return putHalf(b[q8_0D:], d)
}

func termQ8_0(t *Term, b []byte, _ int) {
	t.D = half(b[q8_0D:])
	for i, q := range b[q8_0Q:][:TermLen] {
		t.Q[i] = int8(q)
	}
}
