package codec

// A Q8_0 block: 32 elements in 34 bytes. Element i is d * q[i].
const (
	Q8_0Elems = 32
	Q8_0Bytes = 34
	Q8_0D     = 0 // d, a half
	Q8_0Q     = 2 // q, 32 int8
)

// A Q4_0 block: 32 elements in 18 bytes. The low nibble of byte i of q is element i, its high
// nibble element i+16; an element is d * (nibble - 8).
const (
	Q4_0Elems = 32
	Q4_0Bytes = 18
	Q4_0D     = 0 // d, a half
	Q4_0Q     = 2 // q, 16 bytes
)

// A Q4_1 block: 32 elements in 20 bytes, nibbles as in Q4_0. An element is d*nibble + m.
const (
	Q4_1Elems = 32
	Q4_1Bytes = 20
	Q4_1D     = 0 // d, a half
	Q4_1M     = 2 // m, a half
	Q4_1Q     = 4 // q, 16 bytes
)

// A Q5_0 block: 32 elements in 22 bytes, the low 4 bits as in Q4_0. Bit i of high, read as one little-endian
// number, is the fifth bit of element i, which is d * (bits - 16).
const (
	Q5_0Elems = 32
	Q5_0Bytes = 22
	Q5_0D     = 0 // d, a half
	Q5_0High  = 2 // high, 4 bytes
	Q5_0Q     = 6 // q, 16 bytes
)

// A Q5_1 block: 32 elements in 24 bytes, bits as in Q5_0. An element is d*bits + m.
const (
	Q5_1Elems = 32
	Q5_1Bytes = 24
	Q5_1D     = 0 // d, a half
	Q5_1M     = 2 // m, a half
	Q5_1High  = 4 // high, 4 bytes
	Q5_1Q     = 8 // q, 16 bytes
)

func unpackQ8_0(dst []float32, b []byte) {
	d := half(b[Q8_0D:])
	for i, q := range b[Q8_0Q:Q8_0Bytes] {
		dst[i] = d * float32(int8(q))
	}
}

func unpackQ4_0(dst []float32, b []byte) {
	d := half(b[Q4_0D:])
	for i, q := range b[Q4_0Q:Q4_0Bytes] {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

func unpackQ4_1(dst []float32, b []byte) {
	d, m := half(b[Q4_1D:]), half(b[Q4_1M:])
	for i, q := range b[Q4_1Q:Q4_1Bytes] {
		dst[i] = float32(d*float32(q&15)) + m
		dst[i+16] = float32(d*float32(q>>4)) + m
	}
}

func unpackQ5_0(dst []float32, b []byte) {
	d := half(b[Q5_0D:])
	for i := range dst {
		dst[i] = d * float32(int(q5(b[Q5_0High:], i))-16)
	}
}

func unpackQ5_1(dst []float32, b []byte) {
	d, m := half(b[Q5_1D:]), half(b[Q5_1M:])
	for i := range dst {
		dst[i] = float32(d*float32(q5(b[Q5_1High:], i))) + m
	}
}

// q5 returns the five bits of element i of a block of 32, whose high bits and then nibbles begin at b.
func q5(b []byte, i int) byte {
	return b[4+i%16]>>(i/16*4)&15 | b[i/8]>>(i%8)&1<<4
}
