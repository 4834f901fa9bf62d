package tensor

// Q5_1 is blocks of 32 elements in 24 bytes, bits as in Q5_0. An element is d*bits + m.
const Q5_1 Type = 7

const (
	q5_1D    = 0 // d, a half
	q5_1M    = 2 // m, a half
	q5_1High = 4 // high, 4 bytes
	q5_1Q    = 8 // q, 16 bytes
)

// Packed: as Q5_0.
var q5_1 = Codec{
	Type: Q5_1, Name: "Q5_1", Elems: 32, Bytes: 24,
	Unpack:   unpackQ5_1,
	Pack:     packQ5_1,
	Parts:    []Part{{q5_1High, 2}, {fiveBits, 4}},
	Reorder:  func(dst, src []byte) { reorderQ5(dst, src, q5_1High) },
	Restore:  func(dst, src []byte) { restoreQ5(dst, src, q5_1High) },
	Term:     termQ5_1,
	FileType: 9,
	Fallback: F16,
}

func unpackQ5_1(dst []float32, b []byte) {
	d, m := half(b[q5_1D:]), half(b[q5_1M:])
	for i := range dst {
		dst[i] = float32(d*float32(q5(b[q5_1High:], i))) + m
	}
}

func packQ5_1(b []byte, src []float32) bool {
	d, m, ok := packAffine(b[q5_1D:], src, 31)
	inv := inverse(d)
	put5(b[q5_1High:], func(i int) int { return clampRound((src[i]-m)*inv, 0, 31) })
	return ok
}

func termQ5_1(t *Term, b []byte, _ int) {
	t.offsets(b[q5_1D:], 1)
	t.nibbles(b[q5_1Q:])
	t.fifth(word(b[q5_1High:]))
}
