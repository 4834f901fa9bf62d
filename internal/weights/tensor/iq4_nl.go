package tensor

// IQ4_NL is blocks of 32 elements in 18 bytes, nibbles as in Q4_0. An element is d * iq4Values[nibble].
const IQ4_NL Type = 20

const (
	iq4_NLD = 0 // d, a half
	iq4_NLQ = 2 // q, 16 bytes
)

// iq4Values are the values of the nibbles of IQ4_NL and IQ4_XS.
var iq4Values = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// Packed: as Q4_0.
var iq4_NL = Codec{
	Type: IQ4_NL, Name: "IQ4_NL", Elems: 32, Bytes: 18,
	Unpack:    unpackIQ4_NL,
	Pack:      packIQ4_NL,
	Parts:     []Part{{iq4_NLQ, 2}, {16, 4}},
	Term:      termIQ4_NL,
	FullBytes: true,
	FileType:  25,
	Fallback:  F16,
}

func unpackIQ4_NL(dst []float32, b []byte) {
	unpackCodes(dst, b[iq4_NLQ:], half(b[iq4_NLD:]), &iq4Values)
}

// unpackCodes writes the values of 32 nibbles, d times those of their codebook.
func unpackCodes(dst []float32, q []byte, d float32, codes *[16]int8) {
	for i, q := range q[:16] {
		dst[i] = d * float32(codes[q&15])
		dst[i+16] = d * float32(codes[q>>4])
	}
}

func packIQ4_NL(b []byte, src []float32) bool {
	ok := putHalf(b[iq4_NLD:], fitCodes(src))
	packCodes(b[iq4_NLQ:], src, half(b[iq4_NLD:]))
	return ok
}

// packCodes writes the nibbles of 32 elements.
func packCodes(b []byte, src []float32, d float32) {
	inv := inverse(d)
	code := func(x float32) byte { return iq4Nearest(float64(x * inv)) }
	for i := range 16 {
		b[i] = code(src[i]) | code(src[i+16])<<4
	}
}

// iq4Nearest returns the index of the value of iq4Values nearest to v.
func iq4Nearest(v float64) byte {
	const low, high = -127, 113
	if !(v > low) {
		return 0
	}
	return iq4Nearests[int(2*(min(v, high)-low))]
}

// iq4Nearests holds the results of iq4Nearest for steps of a half. A step begins where two values are equally near.
var iq4Nearests = func() (t [2*(113+127) + 1]byte) {
	code := 0
	for i := range t {
		for code < 15 && i-2*127 >= int(iq4Values[code])+int(iq4Values[code+1]) {
			code++
		}
		t[i] = byte(code)
	}
	return t
}()

func termIQ4_NL(t *Term, b []byte, _ int) {
	t.D = half(b[iq4_NLD:])
	t.codes(b[iq4_NLQ:], &iq4Values)
}
