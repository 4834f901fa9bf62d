//go:build amd64 && !purego

package kernel

// manyRows is how many rows pay for tiles of many: those turn short elements into floats once for all rows.
const manyRows = 16

// manySteps and manyGroups are the elements that a call of many takes at once: what stays in the first-level cache, and
// what it has room for.
const (
	manySteps  = 64
	manyGroups = 4
	manyTurn   = 4   // steps of a turn of a tile's loop
	manyLines  = 128 // bytes that a turn can prefetch
)

// A product is what a tile multiplies: rows of a, by elements of width bytes, group by group of 16 side by side and step
// by step. Strides are in bytes.
type product struct {
	dst       []float32
	dstStride int
	a         []float32
	aStride   int
	n         int
	b         []byte
	bStep     int
	bGroup    int
	width     int
	scales    *byte // a factor of each step for a, or nil
}

// many multiplies manyRows rows or more: those of dst take the products, or start with them where fresh is set. What comes
// next is prefetched, an equal share with each part of the work.
func (p *product) many(steps, groups int, fresh bool, next []byte) {
	fives, fours, sixes := manyTiles(p.n)
	parts := (steps + manySteps - 1) / manySteps * ((groups + manyGroups - 1) / manyGroups)
	share := len(next) / parts
	for g := 0; g < groups; g += manyGroups {
		for k := 0; k < steps; k += manySteps {
			ks, gs := min(manySteps, steps-k), min(manyGroups, groups-g)
			// A product of fewer groups than a tile has is one tile or two: never too few turns.
			pace := min(manyLines, share/max(1, (fives+fours+sixes)*(ks/manyTurn))+1)
			dst, a, b, ahead := &p.dst[16*g], &p.a[k], &p.b[k*p.bStep+g*p.bGroup], first(next, p.b)
			fresh := fresh && k == 0
			if AVX512 {
				attendManyAVX512(dst, p.dstStride, a, p.aStride, fives, fours, sixes, b, p.bStep, p.bGroup, p.width, ks, gs, fresh, p.scales, ahead, pace)
			} else {
				attendManyAVX2(dst, p.dstStride, a, p.aStride, fives, fours, sixes, b, p.bStep, p.bGroup, p.width, ks, gs, fresh, p.scales, ahead, pace)
			}
			next = next[share:]
		}
	}
}

// manyTiles cuts n rows, 12 or more, into tiles of five, four and six.
func manyTiles(n int) (fives, fours, sixes int) {
	cut := [6][2]int{{0, 0}, {1, 2}, {0, 2}, {1, 1}, {0, 1}, {1, 0}}[n%6]
	return cut[0], cut[1], (n - 5*cut[0] - 4*cut[1]) / 6
}
