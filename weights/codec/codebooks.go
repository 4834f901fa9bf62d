package codec

import "math"

// IQ4Values are the values of the nibbles of IQ4_NL and IQ4_XS.
var IQ4Values = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// FP4Values are twice the values of the nibbles of MXFP4: floats of a sign, two bits of exponent and one of
// fraction (E2M1).
var FP4Values = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// An IQ4_NL block: 32 elements in 18 bytes, nibbles as in Q4_0. An element is d * IQ4Values[nibble].
const (
	IQ4_NLElems = 32
	IQ4_NLBytes = 18
	IQ4_NLD     = 0 // d, a half
	IQ4_NLQ     = 2 // q, 16 bytes
)

// An IQ4_XS block: 256 elements in 136 bytes, eight sub-blocks of 32 with nibbles as in IQ4_NL. With the scale from
// [IQ4XSScale], an element is (d*scale) * IQ4Values[nibble].
const (
	IQ4_XSElems  = 256
	IQ4_XSBytes  = 136
	IQ4_XSD      = 0 // d, a half
	IQ4_XSScales = 2 // 6 bytes: eight scales of 6 bits
	IQ4_XSQ      = 8 // q, 128 bytes
)

// An MXFP4 block: 32 elements in 17 bytes, nibbles as in Q4_0. With d from [E8M0Half], an element is
// d * FP4Values[nibble].
const (
	MXFP4Elems = 32
	MXFP4Bytes = 17
	MXFP4E     = 0 // e, an exponent
	MXFP4Q     = 1 // q, 16 bytes
)

// IQ4XSScale returns the scale, -32 to 31, of sub-block j (0 to 7) from the 6 scale bytes of an IQ4_XS
// block. Of the scale plus 32, the high 2 bits are bits 2j and 2j+1 of the first two bytes, the low 4 bits nibble j
// of the last four.
func IQ4XSScale(scales []byte, j int) int8 {
	return int8(scales[2+j/2]>>(j%2*4)&15|scales[j/4]>>(j%4*2)&3<<4) - 32
}

// E8M0Half returns half of the scale that exponent e stands for: 2^(e-128), a subnormal number for e
// below 2. 255, which the format's first definition calls NaN, is the power of two that ggml reads.
func E8M0Half(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

func unpackIQ4_NL(dst []float32, b []byte) {
	unpackCodes(dst, b[IQ4_NLQ:], half(b[IQ4_NLD:]), &IQ4Values)
}

func unpackIQ4_XS(dst []float32, b []byte) {
	d := half(b[IQ4_XSD:])
	for j := range 8 {
		scale := d * float32(IQ4XSScale(b[IQ4_XSScales:], j))
		unpackCodes(dst[32*j:], b[IQ4_XSQ+16*j:], scale, &IQ4Values)
	}
}

func unpackMXFP4(dst []float32, b []byte) {
	unpackCodes(dst, b[MXFP4Q:], E8M0Half(b[MXFP4E]), &FP4Values)
}

// unpackCodes writes the values of 32 nibbles, d times those of their codebook.
func unpackCodes(dst []float32, q []byte, d float32, codes *[16]int8) {
	for i, q := range q[:16] {
		dst[i] = d * float32(codes[q&15])
		dst[i+16] = d * float32(codes[q>>4])
	}
}
