//go:build amd64 && !purego

package matmul

import (
	"grove/internal/kernel"
	"grove/weights/codec"
	"grove/weights/tensor"
)

//go:generate go -C ../_asm run ./matmul -out ../matmul/z_tiles_amd64.s -stubs ../matmul/z_tiles_amd64.go -pkg matmul
//go:generate go -C ../_asm run ./matmul -avx512 -out ../matmul/z_tiles_avx512_amd64.s -stubs ../matmul/z_tiles_avx512_amd64.go -pkg matmul

func mulFloat(t tensor.Type, elem int, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
	if !kernel.AVX2 || k == 0 {
		mulFloatGo(t, elem, dst, stride, w, out, k, g0, g1, x)
		return
	}
	mulTiles(t, lanes*k*elem, dst, stride, w, out, g0, g1, x)
}

func mulBlocks(l *blockLayout, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
	if !kernel.AVX2 || k == 0 {
		mulBlocksGo(l, dst, stride, w, out, k, g0, g1, x)
		return
	}
	mulTiles(l.t, k/l.elems*l.packed(), dst, stride, w, out, g0, g1, x)
}

const (
	maxTileRows = 12
	cacheBytes  = 512 << 10 // of weights that stay in the second-level cache while rows stream by
)

// tileRows returns the rows of the largest tile of a type.
func tileRows(t tensor.Type) int {
	if kernel.AVX512 && wideRows(t) > 0 {
		return wideRows(t)
	}
	switch t {
	case tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.IQ4_NL, tensor.IQ4_XS:
		return 6
	default:
		return 8
	}
}

// mulTiles multiplies tile by tile: of all rows, evenly sized, by one group after another. Groups
// are taken in runs that fit a cache, so that many rows read weights from memory once.
func mulTiles(t tensor.Type, size int, dst []float32, stride int, w []byte, out, g0, g1 int, x *kernel.Rows) {
	run, most := max(1, cacheBytes/size), tileRows(t)
	for ; g0 < g1; g0 += run {
		for r, tiles := 0, (x.N+most-1)/most; tiles > 0; tiles-- {
			n := (x.N - r + tiles - 1) / tiles
			for g := g0; g < min(g0+run, g1); g++ {
				to := dst[r*stride+g*lanes:]
				group := w[g*size:][:size]
				if missing := (g+1)*lanes - out; missing > 0 {
					var whole [maxTileRows * lanes]float32
					tile(t, &whole[0], lanes, &group[0], x, r, n)
					for i := range n {
						copy(to[i*stride:][:lanes-missing], whole[i*lanes:])
					}
					continue
				}
				tile(t, &to[0], stride, &group[0], x, r, n)
			}
			r += n
		}
	}
}

// tile multiplies rows [r, r+n) by one whole group.
func tile(t tensor.Type, dst *float32, stride int, w *byte, x *kernel.Rows, r, n int) {
	if kernel.AVX512 && wide(t, n) {
		tileAVX512(t, dst, stride, w, x, r, n)
		return
	}
	tileAVX2(t, dst, stride, w, x, r, n)
}

func tileAVX2(t tensor.Type, dst *float32, stride int, w *byte, x *kernel.Rows, r, n int) {
	switch t {
	case tensor.F32:
		tileF32AVX2(dst, stride, w, x.K, &x.F[r*x.K], n)
	case tensor.F16:
		tileF16AVX2(dst, stride, w, x.K, &x.F[r*x.K], n)
	case tensor.BF16:
		tileBF16AVX2(dst, stride, w, x.K, &x.F[r*x.K], n)
	default:
		tileBlocksAVX2(t, dst, stride, w, x, r, n)
	}
}

func tileBlocksAVX2(t tensor.Type, dst *float32, stride int, w *byte, x *kernel.Rows, r, n int) {
	const super = codec.Q4_KElems / kernel.QBlock // of every type with super-blocks
	nb := x.K / kernel.QBlock
	q, d, sum := &x.Q[r*x.K], &x.D[r*nb], &x.Sum[r*nb]
	switch t {
	case tensor.Q8_0:
		tileQ8_0AVX2(dst, stride, w, nb, q, d, n)
	case tensor.Q4_0:
		tileQ4_0AVX2(dst, stride, w, nb, q, d, sum, n)
	case tensor.Q4_1:
		tileQ4_1AVX2(dst, stride, w, nb, q, d, sum, n)
	case tensor.Q5_0:
		tileQ5_0AVX2(dst, stride, w, nb, q, d, sum, n)
	case tensor.Q5_1:
		tileQ5_1AVX2(dst, stride, w, nb, q, d, sum, n)
	case tensor.Q2_K:
		tileQ2_KAVX2(dst, stride, w, nb/super, q, d, n)
	case tensor.Q3_K:
		tileQ3_KAVX2(dst, stride, w, nb/super, q, d, n)
	case tensor.Q4_K:
		tileQ4_KAVX2(dst, stride, w, nb/super, q, d, sum, n)
	case tensor.Q5_K:
		tileQ5_KAVX2(dst, stride, w, nb/super, q, d, sum, n)
	case tensor.Q6_K:
		tileQ6_KAVX2(dst, stride, w, nb/super, q, d, n)
	case tensor.IQ4_NL:
		tileIQ4_NLAVX2(dst, stride, w, nb, q, d, n)
	case tensor.IQ4_XS:
		tileIQ4_XSAVX2(dst, stride, w, nb/super, q, d, n)
	case tensor.MXFP4:
		tileMXFP4AVX2(dst, stride, w, nb, q, d, sum, n)
	}
}
