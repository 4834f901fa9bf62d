//go:build amd64 && !purego

package matmul

import (
	"grove/internal/kernel"
	"grove/weights/codec"
	"grove/weights/tensor"
)

// wideRows returns the rows of the largest 512-bit tile of a type, 0 where there is none: the AVX2 tile
// then serves.
func wideRows(t tensor.Type) int {
	switch t {
	case tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0:
		return 12
	case tensor.Q4_0, tensor.Q4_K, tensor.Q6_K:
		return 8
	}
	return 0
}

// wide reports whether the 512-bit tile of a type multiplies n rows. One row of floats only waits for memory, and
// AVX2 keeps the higher clock.
func wide(t tensor.Type, n int) bool {
	switch t {
	case tensor.F32, tensor.F16, tensor.BF16:
		return n > 1
	}
	return wideRows(t) > 0
}

// tileAVX512 multiplies rows [r, r+n) by one whole group of a type that has a 512-bit tile.
func tileAVX512(t tensor.Type, dst *float32, stride int, w *byte, x *kernel.Rows, r, n int) {
	switch t {
	case tensor.F32:
		tileF32AVX512(dst, stride, w, x.K, &x.F[r*x.K], n)
		return
	case tensor.F16:
		tileF16AVX512(dst, stride, w, x.K, &x.F[r*x.K], n)
		return
	case tensor.BF16:
		tileBF16AVX512(dst, stride, w, x.K, &x.F[r*x.K], n)
		return
	}
	const super = codec.Q4_KElems / kernel.QBlock // equal to that of Q6_K
	nb := x.K / kernel.QBlock
	q, d, sum := &x.Q[r*x.K], &x.D[r*nb], &x.Sum[r*nb]
	switch t {
	case tensor.Q8_0:
		tileQ8_0AVX512(dst, stride, w, nb, q, d, n)
	case tensor.Q4_0:
		tileQ4_0AVX512(dst, stride, w, nb, q, d, sum, n)
	case tensor.Q4_K:
		tileQ4_KAVX512(dst, stride, w, nb/super, q, d, sum, n)
	case tensor.Q6_K:
		tileQ6_KAVX512(dst, stride, w, nb/super, q, d, n)
	}
}
