// Package quant defines the block formats of weights: what their bytes mean, in plain Go.
//
// It is the reference that kernels are tested against, not a fast path. The formats are those of
// ggml; all numbers are little endian. A row of a tensor is a whole number of blocks.
package quant

import (
	"encoding/binary"
	"fmt"
	"math"

	"grove/tensor"
)

// codec is how one type is read and written, a block at a time. pack reports false where the
// block's scale cannot be held.
type codec struct {
	unpack func(dst []float32, block []byte)
	pack   func(block []byte, src []float32) bool
	floats bool // a float type: any number of elements at a time, NaN and infinity can be held
}

var codecs = map[tensor.Type]codec{
	tensor.F32:  {unpackF32, packF32, true},
	tensor.F16:  {unpackF16, packF16, true},
	tensor.BF16: {unpackBF16, packBF16, true},
	tensor.Q8_0: {unpackQ8_0, packQ8_0, false},
	tensor.Q4_0: {unpackQ4_0, packQ4_0, false},
	tensor.Q4_K: {unpackQ4_K, packQ4_K, false},
	tensor.Q6_K: {unpackQ6_K, packQ6_K, false},
}

// Supported reports whether [Unpack] and [Pack] know the type.
func Supported(t tensor.Type) bool {
	_, ok := codecs[t]
	return ok
}

// Unpack writes the values of src, consecutive blocks of type t, to dst.
// Len(dst) must be a whole number of blocks and src exactly their bytes. Each value is computed as
// ggml's reference does, in float32 without fused operations, and any bytes are valid: a scale that
// is not finite gives values that are not finite. It fails on a type without a codec and on wrong
// lengths, and then leaves dst alone.
func Unpack(t tensor.Type, dst []float32, src []byte) error {
	c, elems, size, err := prepare(t, len(dst), len(src))
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		c.unpack(dst[:elems], src[:size])
		dst, src = dst[elems:], src[size:]
	}
	return nil
}

// Pack writes src as consecutive blocks of type t to dst; lengths are as in [Unpack].
// Q8_0 and Q4_0 are byte for byte what ggml's reference quantiser writes; Q4_K and Q6_K search less
// than ggml does and stay within the same error limits (see the tests). F16 and BF16 round to nearest
// even and overflow to infinity; the quantised types refuse NaN, infinity and values whose scale
// is beyond a half, and dst then holds the blocks before the refused one.
func Pack(t tensor.Type, dst []byte, src []float32) error {
	c, elems, size, err := prepare(t, len(src), len(dst))
	if err != nil {
		return err
	}
	for at := 0; at < len(src); at += elems {
		x := src[at : at+elems]
		if !c.floats {
			if i := firstNonFinite(x); i >= 0 {
				return fmt.Errorf("quant: element %d is %v, which %v cannot hold", at+i, x[i], t)
			}
		}
		if !c.pack(dst[:size], x) {
			return fmt.Errorf("quant: elements %d to %d are too large for %v", at, at+elems-1, t)
		}
		dst = dst[size:]
	}
	return nil
}

// prepare checks a type and the lengths of both sides, and returns the codec and the elements and
// bytes that one call of it takes.
func prepare(t tensor.Type, nElems, nBytes int) (c codec, elems, size int, err error) {
	c, ok := codecs[t]
	if !ok {
		return c, 0, 0, fmt.Errorf("quant: type %v is not supported", t)
	}
	elems, size, _ = t.Block()
	want, whole := t.RowBytes(nElems)
	if !whole {
		return c, 0, 0, fmt.Errorf("quant: %v: %d elements are not a multiple of %d", t, nElems, elems)
	}
	if nBytes != want {
		return c, 0, 0, fmt.Errorf("quant: %v: %d elements take %d bytes, not %d", t, nElems, want, nBytes)
	}
	if c.floats {
		elems, size = nElems, nBytes // without blocks: all in one piece
	}
	return c, elems, size, nil
}

// firstNonFinite returns the index of the first NaN or infinity of x, or -1.
func firstNonFinite(x []float32) int {
	for i, v := range x {
		if v-v != 0 {
			return i
		}
	}
	return -1
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

// half reads a scale.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

// putHalf writes a scale and reports whether a half can hold it.
func putHalf(b []byte, f float32) bool {
	h := F32ToF16(f)
	binary.LittleEndian.PutUint16(b, h)
	return h&0x7c00 != 0x7c00
}
