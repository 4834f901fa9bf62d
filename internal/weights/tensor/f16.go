package tensor

import "encoding/binary"

// F16 is IEEE 754 binary16 numbers.
const F16 Type = 1

var f16 = Codec{
	Type: F16, Name: "F16", Elems: 1, Bytes: 2,
	Unpack:   unpackF16,
	Pack:     packF16,
	Max:      65519.996, // the next float32 rounds to infinity
	FileType: 1,
}

func unpackF16(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = half(b[2*i:])
	}
}

func packF16(b []byte, src []float32) bool {
	for i, x := range src {
		binary.LittleEndian.PutUint16(b[2*i:], F32ToF16(x))
	}
	return true
}
