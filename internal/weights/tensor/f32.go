package tensor

import (
	"encoding/binary"
	"math"
)

// F32 is IEEE 754 binary32 numbers.
const F32 Type = 0

var f32 = Codec{
	Type: F32, Name: "F32", Elems: 1, Bytes: 4,
	Unpack:   unpackF32,
	Pack:     packF32,
	FileType: 0,
}

func unpackF32(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

func packF32(b []byte, src []float32) bool {
	for i, x := range src {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return true
}
