// Package codec defines the block formats of weights: what their bytes mean, in plain Go.
//
// It is the reference that kernels are tested against, not a fast path. The formats are those of
// ggml; all numbers are little endian. A row of a tensor is a whole number of blocks.
package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"grove/weights/tensor"
)

// types are those whose blocks are known, each with its layout in package tensor.
var types = [...]tensor.Type{
	tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1,
	tensor.Q2_K, tensor.Q3_K, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K, tensor.IQ4_NL, tensor.IQ4_XS, tensor.MXFP4,
}

// Types returns the types that [Unpack] and [Pack] know, in the order in which they are listed for users.
func Types() []tensor.Type { return slices.Clone(types[:]) }

// Supported reports whether [Unpack] and [Pack] know the type.
func Supported(t tensor.Type) bool { return slices.Contains(types[:], t) }

// Unpack writes the values of src, consecutive blocks of type t, to dst.
// Len(dst) must be a whole number of blocks and src exactly their bytes. Each value is computed as
// ggml's reference does, in float32 without fused operations, and any bytes are valid: a scale that
// is not finite gives values that are not finite. It fails on a type without a codec and on wrong
// lengths, and then leaves dst alone.
func Unpack(t tensor.Type, dst []float32, src []byte) error {
	elems, size, err := prepare(t, len(dst), len(src))
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		unpackBlock(t, dst[:elems], src[:size])
		dst, src = dst[elems:], src[size:]
	}
	return nil
}

// Pack writes src as consecutive blocks of type t to dst; lengths are as in [Unpack].
// Q8_0 and Q4_0 are byte for byte what ggml's reference quantiser writes; the others search for the scales
// of least weighted squared error, a larger weight counting more (fit.go), and give the same bytes on every
// machine. F16 and BF16 round to nearest even and overflow to infinity; the quantised types refuse NaN,
// infinity and values whose scale is beyond what the block holds, and dst then holds the blocks before the
// refused one. Calls are independent: rows may be packed in parallel.
func Pack(t tensor.Type, dst []byte, src []float32) error {
	elems, size, err := prepare(t, len(src), len(dst))
	if err != nil {
		return err
	}
	for at := 0; at < len(src); at += elems {
		x := src[at : at+elems]
		if !isFloat(t) {
			if i := firstNonFinite(x); i >= 0 {
				return fmt.Errorf("quant: element %d is %v, which %v cannot hold", at+i, x[i], t)
			}
		}
		if !packBlock(t, dst[:size], x) {
			return fmt.Errorf("quant: elements %d to %d are too large for %v", at, at+elems-1, t)
		}
		dst = dst[size:]
	}
	return nil
}

// prepare checks a type and the lengths of both sides, and returns the elements and bytes that are converted at a
// time: a block, or all where the type has no blocks.
func prepare(t tensor.Type, nElems, nBytes int) (elems, size int, err error) {
	if !Supported(t) {
		return 0, 0, fmt.Errorf("quant: type %v is not supported", t)
	}
	elems, size, _ = t.Block()
	want, whole := t.RowBytes(nElems)
	if !whole {
		return 0, 0, fmt.Errorf("quant: %v: %d elements are not a multiple of %d", t, nElems, elems)
	}
	if nBytes != want {
		return 0, 0, fmt.Errorf("quant: %v: %d elements take %d bytes, not %d", t, nElems, want, nBytes)
	}
	if isFloat(t) {
		elems, size = nElems, nBytes
	}
	return elems, size, nil
}

// isFloat reports a float type: one that has no blocks and holds NaN and infinity.
func isFloat(t tensor.Type) bool { return t == tensor.F32 || t == tensor.F16 || t == tensor.BF16 }

// unpackBlock writes the values of a block. It and [packBlock] call by a switch, not through a table, so that the
// caller's buffers need not live on the heap.
func unpackBlock(t tensor.Type, dst []float32, b []byte) {
	switch t {
	case tensor.F32:
		unpackF32(dst, b)
	case tensor.F16:
		unpackF16(dst, b)
	case tensor.BF16:
		unpackBF16(dst, b)
	case tensor.Q8_0:
		unpackQ8_0(dst, b)
	case tensor.Q4_0:
		unpackQ4_0(dst, b)
	case tensor.Q4_1:
		unpackQ4_1(dst, b)
	case tensor.Q5_0:
		unpackQ5_0(dst, b)
	case tensor.Q5_1:
		unpackQ5_1(dst, b)
	case tensor.Q2_K:
		unpackQ2_K(dst, b)
	case tensor.Q3_K:
		unpackQ3_K(dst, b)
	case tensor.Q4_K:
		unpackQ4_K(dst, b)
	case tensor.Q5_K:
		unpackQ5_K(dst, b)
	case tensor.Q6_K:
		unpackQ6_K(dst, b)
	case tensor.IQ4_NL:
		unpackIQ4_NL(dst, b)
	case tensor.IQ4_XS:
		unpackIQ4_XS(dst, b)
	case tensor.MXFP4:
		unpackMXFP4(dst, b)
	}
}

// packBlock writes a block and reports false where its scale cannot be held.
func packBlock(t tensor.Type, b []byte, src []float32) bool {
	switch t {
	case tensor.F32:
		return packF32(b, src)
	case tensor.F16:
		return packF16(b, src)
	case tensor.BF16:
		return packBF16(b, src)
	case tensor.Q8_0:
		return packQ8_0(b, src)
	case tensor.Q4_0:
		return packQ4_0(b, src)
	case tensor.Q4_1:
		return packQ4_1(b, src)
	case tensor.Q5_0:
		return packQ5_0(b, src)
	case tensor.Q5_1:
		return packQ5_1(b, src)
	case tensor.Q2_K:
		return packQ2_K(b, src)
	case tensor.Q3_K:
		return packQ3_K(b, src)
	case tensor.Q4_K:
		return packQ4_K(b, src)
	case tensor.Q5_K:
		return packQ5_K(b, src)
	case tensor.Q6_K:
		return packQ6_K(b, src)
	case tensor.IQ4_NL:
		return packIQ4_NL(b, src)
	case tensor.IQ4_XS:
		return packIQ4_XS(b, src)
	default:
		return packMXFP4(b, src)
	}
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
