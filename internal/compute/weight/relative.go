package weight

import (
	"fmt"
	"math/big"
	"sort"

	"grove/internal/kernel"
)

// maxReach bounds the distances that a [Relative] tells apart, and so its memory.
const maxReach = 1 << 14

// Relative is T5's bias of attention by relative position (Raffel et al. 2020, section 2.1): for each head a number
// that depends on the bucket of the key's index less the row's. It is read-only.
type Relative struct {
	heads, reach int
	width        int       // values of a head
	bias         []float32 // by head, then by distance, from -(reach + a block) up to reach + a block - 1
}

// NewRelative makes the biases of a table of buckets x heads values. Half of a side's buckets are of one distance each;
// the others grow by equal factors up to the distance reach, and the last one is of all beyond. With both set, the
// first half of the table is for keys that are not behind the row and the second half for keys behind it; else all of
// it is for the keys before the row, as a decoder has no others. It returns an error where the table has no such
// buckets or reach is out of range.
func NewRelative(table Vector, heads, reach int, both bool) (*Relative, error) {
	if heads < 1 || table.Len()%heads != 0 {
		return nil, fmt.Errorf("weight: relative positions of %d heads from a table of %d values; it must have a value for each head and bucket", heads, table.Len())
	}
	side := table.Len() / heads
	if both {
		if side%2 != 0 {
			return nil, fmt.Errorf("weight: %d buckets of relative positions; keys on both sides need an even number", side)
		}
		side /= 2
	}
	if side < 2 || side/2 >= reach || reach > maxReach {
		return nil, fmt.Errorf("weight: %d buckets of relative positions for distances up to %d; 2 buckets of a side or more are needed, and distances beyond %d up to %d",
			side, reach, side/2, maxReach)
	}
	starts := bucketStarts(side, reach)
	bucket := func(distance int) int { return sort.SearchInts(starts, distance+1) - 1 }
	r := &Relative{heads: heads, reach: reach, width: 2 * (reach + kernel.PageSlots)}
	r.bias = make([]float32, heads*r.width)
	for i := range r.width {
		d := i - reach - kernel.PageSlots
		b := bucket(max(0, -d))
		if both && d > 0 {
			b = side + bucket(d)
		}
		for h := range heads {
			r.bias[h*r.width+i] = table.F[b*heads+h]
		}
	}
	return r, nil
}

// bucketStarts returns the least distance of each bucket of a side. With e = side/2, bucket e+k begins at the least n of
// log(n/e) / log(reach/e) * (side-e) >= k, which is n^(side-e) * e^k >= reach^k * e^(side-e): integers, so that no
// rounding of a logarithm decides.
func bucketStarts(side, reach int) []int {
	starts := make([]int, side)
	e := side / 2
	power := func(base, exponent int) *big.Int {
		return new(big.Int).Exp(big.NewInt(int64(base)), big.NewInt(int64(exponent)), nil)
	}
	for b := range starts {
		starts[b] = b
		if k := b - e; k > 0 {
			right := new(big.Int).Mul(power(reach, k), power(e, side-e))
			starts[b] = sort.Search(reach, func(n int) bool {
				return new(big.Int).Mul(power(n, side-e), power(e, k)).Cmp(right) >= 0
			})
		}
	}
	return starts
}

// Heads returns the number of heads.
func (r *Relative) Heads() int { return r.heads }

// Of returns the biases of a head for the 64 indices of a block, whose first one is at a distance from the row. Read only.
func (r *Relative) Of(head, distance int) []float32 {
	at := head*r.width + min(max(distance, -r.reach-kernel.PageSlots), r.reach) + r.reach + kernel.PageSlots
	return r.bias[at : at+kernel.PageSlots]
}
