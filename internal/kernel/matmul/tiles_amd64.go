//go:build amd64 && !purego

package matmul

import (
	"grove/internal/kernel"
	"grove/weights/tensor"
)

//go:generate go -C ../_asm run ./matmul -out ../matmul/z_tiles_amd64.s -stubs ../matmul/z_tiles_amd64.go -pkg matmul
//go:generate go -C ../_asm run ./matmul -avx512 -out ../matmul/z_tiles_avx512_amd64.s -stubs ../matmul/z_tiles_avx512_amd64.go -pkg matmul

// A tile multiplies rows by one group of a type. One of its functions is set: floats for float types, signed for integers
// that fill a byte or whose sums are taken in the tile, summed for those that need the sums of the activations.
type tile struct {
	rows   int // of the largest tile
	fewest int // rows for which the tile is used
	floats func(dst *float32, stride int, w *byte, k int, x *float32, n int)
	signed func(dst *float32, stride int, w *byte, nb int, q *int8, d *float32, n int)
	summed func(dst *float32, stride int, w *byte, nb int, q *int8, d *float32, sum *int32, n int)
}

// narrow are the AVX2 tiles by type. Where a type has none, the portable product serves.
var narrow = []tile{
	tensor.F32:    {rows: 6, floats: tileF32AVX2},
	tensor.F16:    {rows: 6, floats: tileF16AVX2},
	tensor.BF16:   {rows: 6, floats: tileBF16AVX2},
	tensor.Q8_0:   {rows: 6, signed: tileQ8_0AVX2},
	tensor.Q4_0:   {rows: 8, summed: tileQ4_0AVX2},
	tensor.Q4_1:   {rows: 8, summed: tileQ4_1AVX2},
	tensor.Q5_0:   {rows: 8, summed: tileQ5_0AVX2},
	tensor.Q5_1:   {rows: 8, summed: tileQ5_1AVX2},
	tensor.Q2_K:   {rows: 8, signed: tileQ2_KAVX2},
	tensor.Q3_K:   {rows: 8, signed: tileQ3_KAVX2},
	tensor.Q4_K:   {rows: 8, summed: tileQ4_KAVX2},
	tensor.Q5_K:   {rows: 8, summed: tileQ5_KAVX2},
	tensor.Q6_K:   {rows: 8, signed: tileQ6_KAVX2},
	tensor.IQ4_NL: {rows: 6, signed: tileIQ4_NLAVX2},
	tensor.IQ4_XS: {rows: 6, signed: tileIQ4_XSAVX2},
	tensor.MXFP4:  {rows: 8, summed: tileMXFP4AVX2},
}

// wide are the 512-bit tiles by type. Where a type has none, the AVX2 tile serves. One row of floats only waits for
// memory, and AVX2 keeps the higher clock.
var wide = []tile{
	tensor.F32:  {rows: 12, fewest: 2, floats: tileF32AVX512},
	tensor.F16:  {rows: 12, fewest: 2, floats: tileF16AVX512},
	tensor.BF16: {rows: 12, fewest: 2, floats: tileBF16AVX512},
	tensor.Q8_0: {rows: 12, signed: tileQ8_0AVX512},
	tensor.Q4_0: {rows: 8, summed: tileQ4_0AVX512},
	tensor.Q4_K: {rows: 8, summed: tileQ4_KAVX512},
	tensor.Q6_K: {rows: 8, signed: tileQ6_KAVX512},
}

// tiles are those of one type; nil: there is none.
type tiles struct{ narrow, wide *tile }

func tilesOf(t tensor.Type) tiles {
	find := func(table []tile) *tile {
		if int(t) < len(table) && table[t].rows > 0 {
			return &table[t]
		}
		return nil
	}
	return tiles{find(narrow), find(wide)}
}

// choose returns the tile in use for n rows, nil where there is none.
func (t tiles) choose(n int) *tile {
	switch {
	case kernel.AVX512 && t.wide != nil && n >= t.wide.fewest:
		return t.wide
	case kernel.AVX2:
		return t.narrow
	}
	return nil
}

// cacheBytes is the bytes of weights that stay in the second-level cache while rows stream by.
const cacheBytes = 512 << 10

// multiply multiplies tile by tile: of all rows, evenly sized, by one group after another. Groups
// are taken in runs that fit a cache, so that many rows read weights from memory once. It returns false, and does
// nothing, where no tile is in use.
func (t tiles) multiply(f *Format, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *Scratch) bool {
	largest := t.choose(maxTileRows)
	if largest == nil || k == 0 {
		return false
	}
	size, blocks, most := f.groupBytes(k), k/f.BlockK, largest.rows
	run := max(1, cacheBytes/size)
	for ; g0 < g1; g0 += run {
		for r, count := 0, (x.N+most-1)/most; count > 0; count-- {
			n := (x.N - r + count - 1) / count
			one := t.choose(n)
			for g := g0; g < min(g0+run, g1); g++ {
				to := dst[r*stride+g*lanes:]
				group := w[g*size:][:size]
				if missing := (g+1)*lanes - out; missing > 0 {
					one.multiply(&s.group[0], lanes, &group[0], blocks, x, r, n)
					for i := range n {
						copy(to[i*stride:][:lanes-missing], s.group[i*lanes:])
					}
					continue
				}
				one.multiply(&to[0], stride, &group[0], blocks, x, r, n)
			}
			r += n
		}
	}
	return true
}

// multiply multiplies rows [r, r+n) by one whole group of some blocks an output.
func (t *tile) multiply(dst *float32, stride int, w *byte, blocks int, x *kernel.Rows, r, n int) {
	if t.floats != nil {
		t.floats(dst, stride, w, blocks, &x.F[r*x.K], n)
		return
	}
	nb := x.K / kernel.QBlock
	q, d := &x.Q[r*x.K], &x.D[r*nb]
	if t.signed != nil {
		t.signed(dst, stride, w, blocks, q, d, n)
		return
	}
	t.summed(dst, stride, w, blocks, q, d, &x.Sum[r*nb], n)
}
