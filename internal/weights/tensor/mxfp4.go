package tensor

import "math"

// MXFP4 is blocks of 32 elements in 17 bytes, nibbles as in Q4_0. With d from e8m0Half, an element is
// d * fp4Values[nibble].
const MXFP4 Type = 39

const (
	mxfp4E = 0 // e, an exponent
	mxfp4Q = 1 // q, 16 bytes
)

// fp4Values are twice the values of the nibbles: floats of a sign, two bits of exponent and one of fraction (E2M1).
var fp4Values = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// Packed: the exponents, then nibbles by quads, as Q4_0.
var mxfp4 = Codec{
	Type: MXFP4, Name: "MXFP4", Elems: 32, Bytes: 17,
	Unpack:   unpackMXFP4,
	Pack:     packMXFP4,
	Parts:    []Part{{mxfp4Q, 1}, {16, 4}},
	Term:     termMXFP4,
	FileType: 38,
	Fallback: F16,
}

// e8m0Half returns half of the scale that exponent e stands for: 2^(e-128), a subnormal number for e
// below 2. 255, which the format's first definition calls NaN, is the power of two that ggml reads.
func e8m0Half(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

func unpackMXFP4(dst []float32, b []byte) {
	unpackCodes(dst, b[mxfp4Q:], e8m0Half(b[mxfp4E]), &fp4Values)
}

// packMXFP4 takes the exponent that brings the peak below twice the largest value, or the next, whichever has
// the smaller squared error.
func packMXFP4(b []byte, src []float32) bool {
	e := 0
	if peak := float64(peakOf(src)); peak != 0 {
		_, log := math.Frexp(peak)
		e = min(max(log-3+127, 0), 254)
		if fp4Error(src, e+1) < fp4Error(src, e) {
			e++
		}
	}
	b[mxfp4E] = byte(e)
	inv := math.Ldexp(1, 128-e)
	for i := range 16 {
		b[mxfp4Q+i] = fp4Nearest(float64(src[i])*inv) | fp4Nearest(float64(src[i+16])*inv)<<4
	}
	return true
}

// fp4Error returns the squared error of x under an exponent.
func fp4Error(x []float32, e int) (sum float64) {
	d := math.Ldexp(1, e-128)
	for _, v := range x {
		miss := float64(v)/d - float64(fp4Values[fp4Nearest(float64(v)/d)])
		sum += float64(miss * miss)
	}
	return float64(sum * float64(d*d))
}

// fp4Nearest returns the index of the value of fp4Values nearest to v.
func fp4Nearest(v float64) byte {
	code := fp4Nearests[int(2*min(math.Abs(v), 10))]
	if v < 0 && code != 0 {
		code |= 8
	}
	return code
}

// fp4Nearests holds the indices of the values nearest to steps of a half, which begin where two values are
// equally near.
var fp4Nearests = [21]byte{0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7}

func termMXFP4(t *Term, b []byte, _ int) {
	t.D = e8m0Half(b[mxfp4E])
	t.codes(b[mxfp4Q:], &fp4Values)
}
