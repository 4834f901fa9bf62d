package tensor

import "encoding/binary"

// BF16 is bfloat16 numbers: the upper halves of float32 numbers.
const BF16 Type = 30

var bf16 = Codec{
	Type: BF16, Name: "BF16", Elems: 1, Bytes: 2,
	Unpack:   unpackBF16,
	Pack:     packBF16,
	Max:      0x1.fefffep127, // the next float32 rounds to infinity
	FileType: 32,
}

func unpackBF16(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(b[2*i:]))
	}
}

func packBF16(b []byte, src []float32) bool {
	for i, x := range src {
		binary.LittleEndian.PutUint16(b[2*i:], F32ToBF16(x))
	}
	return true
}
