//go:build amd64 && !purego

package matmul

import (
	"grove/internal/kernel"
	"grove/weights/tensor"
)

//go:generate go -C ../_asm run ./matmul -set avx2 -out ../matmul/z_tiles_amd64.s -stubs ../matmul/z_tiles_amd64.go -pkg matmul
//go:generate go -C ../_asm run ./matmul -set avx512 -out ../matmul/z_tiles_avx512_amd64.s -stubs ../matmul/z_tiles_avx512_amd64.go -pkg matmul

// A tile multiplies rows by one group of a type. One of its functions is set: floats for float types, signed for integers
// that fill a byte or whose sums are taken in the tile, summed for those that need the sums of the activations.
type tile struct {
	rows   int // of the largest tile
	fewest int // rows for which the tile is used
	floats func(dst *float32, stride int, w *byte, k int, x *float32, n int)
	signed func(dst *float32, stride int, w *byte, nb int, q *int8, d *float32, n int)
	summed func(dst *float32, stride int, w *byte, nb int, q *int8, d *float32, sum *int32, n int)
}

// A tileSet is the tiles of an instruction set by type, in use while a flag of package kernel is on.
type tileSet struct {
	name  string
	on    *bool
	tiles []tile
}

// tileSets are in the order of preference. Where the first set that is on has no tile for a type or for so few rows, the
// next one that is on serves, and last the portable product.
var tileSets = [...]tileSet{
	{"avx512", &kernel.AVX512, tilesAVX512},
	{"avx2", &kernel.AVX2, tilesAVX2},
}

// tilesAVX2 serve every number of rows: a type without one has the portable product.
var tilesAVX2 = []tile{
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

// tilesAVX512 have 512 bits. One row of floats only waits for memory, and AVX2 keeps the higher clock.
var tilesAVX512 = []tile{
	tensor.F32:  {rows: 12, fewest: 2, floats: tileF32AVX512},
	tensor.F16:  {rows: 12, fewest: 2, floats: tileF16AVX512},
	tensor.BF16: {rows: 12, fewest: 2, floats: tileBF16AVX512},
	tensor.Q8_0: {rows: 12, signed: tileQ8_0AVX512},
	tensor.Q4_0: {rows: 8, summed: tileQ4_0AVX512},
	tensor.Q4_K: {rows: 8, summed: tileQ4_KAVX512},
	tensor.Q6_K: {rows: 8, signed: tileQ6_KAVX512},
}

// tiles are those of one type, in the order of tileSets; nil: the set has none.
type tiles [len(tileSets)]*tile

func tilesOf(t tensor.Type) (found tiles) {
	for i, set := range tileSets {
		if int(t) < len(set.tiles) && set.tiles[t].rows > 0 {
			found[i] = &set.tiles[t]
		}
	}
	return found
}

// choose returns the tile in use for n rows, nil where there is none.
func (t *tiles) choose(n int) *tile {
	for i := range tileSets {
		if *tileSets[i].on && t[i] != nil && n >= t[i].fewest {
			return t[i]
		}
	}
	return nil
}

// cacheBytes is the bytes of weights that stay in the second-level cache while rows stream by.
const cacheBytes = 512 << 10

// multiply multiplies tile by tile: of all rows, evenly sized, by one group after another. Groups
// are taken in runs that fit a cache, so that many rows read weights from memory once. It returns false, and does
// nothing, where no tile is in use.
func (t *tiles) multiply(f *Format, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *Scratch) bool {
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
