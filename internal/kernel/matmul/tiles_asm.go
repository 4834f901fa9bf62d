//go:build (amd64 || arm64) && !purego

package matmul

import (
	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// A tile multiplies rows by one group of a type. One of its functions is set: floats for float types, signed for integers
// that fill a byte or whose sums are taken in the tile, summed for those that need the sums of the activations.
type tile struct {
	rows   int // of the largest tile
	fewest int // rows for which the tile is used
	expansion
	floats func(dst *float32, stride int, w *byte, k int, x *float32, n int)
	groups []groupsTile // of floats, for several groups at once, in the order of preference
	signed func(dst *float32, stride int, w *byte, nb int, q *int8, d *float32, n int)
	summed func(dst *float32, stride int, w *byte, nb int, q *int8, d *float32, sum *int32, n int)
}

// An expansion makes of packed blocks what a tile reads, once for all rows of a product. The zero value is none.
type expansion struct {
	least  int // rows of a product that make up for it
	bytes  int // that 32 inputs of a group become
	expand func(to, w *byte, nb int)
}

// A groupsTile multiplies up to so many rows by several adjacent groups of floats.
type groupsTile struct {
	groups, rows int
	floats       func(dst *float32, stride int, w *byte, k int, x *float32, n int)
}

// A tileSet is the tiles of an instruction set by type, in use while a flag of package kernel is on.
type tileSet struct {
	name  string
	on    *bool
	tiles []tile
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

// choose returns the tile in use for n rows of a product of so many, nil where there is none. Weights are expanded for all
// rows of a product, or for none.
func (t *tiles) choose(n, product int, expand bool) *tile {
	for i := range tileSets {
		if *tileSets[i].on && t[i] != nil && t[i].serves(n, product, expand) {
			return t[i]
		}
	}
	return nil
}

func (t *tile) serves(n, product int, expand bool) bool {
	if t.expand == nil {
		return n >= t.fewest
	}
	smallest := product / ((product + t.rows - 1) / t.rows)
	return smallest >= t.fewest && (expand || product >= t.least)
}

// cacheBytes is the bytes of weights that stay in the second-level cache while rows stream by.
const cacheBytes = 512 << 10

// multiply multiplies tile by tile: of all rows, evenly sized, by one group after another. Groups
// are taken in runs that fit a cache, so that many rows read weights from memory once, and expanded where the tiles need
// it. It returns false, and does nothing, where no tile is in use.
func (t *tiles) multiply(f *Format, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *Scratch) bool {
	largest := t.choose(maxTileRows, x.N, s.Expand)
	if largest == nil || k == 0 {
		return false
	}
	packed, blocks, most := f.groupBytes(k), k/f.BlockK, largest.rows
	size := packed
	if largest.expand != nil {
		blocks = k / kernel.QBlock
		size = blocks * largest.bytes
	}
	run := max(1, cacheBytes/size)
	if x.N <= most {
		run = g1 - g0 // one tile reads weights once anyway
	}
	for ; g0 < g1; g0 += run {
		g1 := min(g0+run, g1)
		w := w[g0*packed:]
		if largest.expand != nil {
			to := s.expanded((g1 - g0) * size)
			largest.expand(&to[0], &w[0], (g1-g0)*(k/f.BlockK)) // groups lie side by side
			w = to
		}
		for r, count := 0, (x.N+most-1)/most; count > 0; count-- {
			n := (x.N - r + count - 1) / count
			one := t.choose(n, x.N, s.Expand)
			for g := g0; g < g1; {
				to := dst[r*stride+g*lanes:]
				if missing := (g+1)*lanes - out; missing > 0 {
					one.multiply(&s.group[0], lanes, &w[(g-g0)*size], 1, blocks, x, r, n)
					for i := range n {
						copy(to[i*stride:][:lanes-missing], s.group[i*lanes:])
					}
					break
				}
				g += one.multiply(&to[0], stride, &w[(g-g0)*size], min(g1, out/lanes)-g, blocks, x, r, n)
			}
			r += n
		}
	}
	return true
}

// multiply multiplies rows [r, r+n) by the first of some whole groups at w, of some blocks an output. It returns the number
// of groups that it multiplied, at least one.
func (t *tile) multiply(dst *float32, stride int, w *byte, groups, blocks int, x *kernel.Rows, r, n int) int {
	if t.floats != nil {
		for _, many := range t.groups {
			if n <= many.rows && groups >= many.groups {
				many.floats(dst, stride, w, blocks, &x.F[r*x.K], n)
				return many.groups
			}
		}
		t.floats(dst, stride, w, blocks, &x.F[r*x.K], n)
		return 1
	}
	nb := x.K / kernel.QBlock
	q, d := &x.Q[r*x.K], &x.D[r*nb]
	if t.signed != nil {
		t.signed(dst, stride, w, blocks, q, d, n)
		return 1
	}
	t.summed(dst, stride, w, blocks, q, d, &x.Sum[r*nb], n)
	return 1
}
