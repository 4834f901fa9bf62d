package compute

import (
	"errors"
	"fmt"
	"math/big"
	"sort"

	"grove/internal/kernel"
	"grove/kv"
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
		return nil, fmt.Errorf("compute: relative positions of %d heads from a table of %d values; it must have a value for each head and bucket", heads, table.Len())
	}
	side := table.Len() / heads
	if both {
		if side%2 != 0 {
			return nil, fmt.Errorf("compute: %d buckets of relative positions; keys on both sides need an even number", side)
		}
		side /= 2
	}
	if side < 2 || side/2 >= reach || reach > maxReach {
		return nil, fmt.Errorf("compute: %d buckets of relative positions for distances up to %d; 2 buckets of a side or more are needed, and distances beyond %d up to %d",
			side, reach, side/2, maxReach)
	}
	starts := bucketStarts(side, reach)
	bucket := func(distance int) int { return sort.SearchInts(starts, distance+1) - 1 }
	r := &Relative{heads: heads, reach: reach, width: 2 * (reach + kv.PageTokens)}
	r.bias = make([]float32, heads*r.width)
	for i := range r.width {
		d := i - reach - kv.PageTokens
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

// of returns the biases of a head for the indices of a block, whose first one is at a distance from the row.
func (r *Relative) of(head, distance int) []float32 {
	at := head*r.width + min(max(distance, -r.reach-kv.PageTokens), r.reach) + r.reach + kv.PageTokens
	return r.bias[at : at+kv.PageTokens]
}

// checkBias returns an error where the biases of a layer's scores do not fit its heads.
func (c *Attention) checkBias() error {
	switch {
	case c.Slopes.F == nil && c.Relative == nil:
		return nil
	case c.Slopes.F != nil && len(c.Slopes.F) != c.Heads, c.Relative != nil && c.Relative.heads != c.Heads:
		return fmt.Errorf("compute: layer %d: biases of the scores for another number of heads than %d", c.Layer, c.Heads)
	case c.Softcap > 0:
		return errors.New("compute: attention with a soft cap and biases of its scores; it may have one of them")
	}
	return nil
}

// biased reports whether scores have biases.
func (c *Attention) biased() bool { return c.Slopes.F != nil || c.Relative != nil }

// beginBias makes room for the distances that ALiBi multiplies: those of index i of a text are at context - i and behind.
func (t *attendTask) beginBias() {
	if n := t.x.Cache.Config().Context + kv.PageTokens; t.c.Slopes.F != nil && len(t.distances) != 2*n {
		t.distances = make([]float32, 2*n)
		for i := range t.distances {
			t.distances[i] = float32(max(i-n, n-i))
		}
	}
}

// bias scales the scores of the queries from first to end in a block, those of an active row and the rows behind it, and adds
// the biases of their heads.
func (t *attendTask) bias(w *attendWorker, first, end, row, head, block int) {
	for q := first; q < end; q++ {
		s := w.scores[q*kv.PageTokens : (q+1)*kv.PageTokens]
		kernel.Scale(s, t.c.Scale)
		h := head*t.group + q%t.group
		distance := block*kv.PageTokens - int(t.row(row+(q-first)/t.group).Index)
		if r := t.c.Relative; r != nil {
			kernel.Add(s, r.of(h, distance))
		}
		if slopes := t.c.Slopes.F; slopes != nil {
			at := len(t.distances)/2 + distance
			kernel.AddScaled(s, -slopes[h], t.distances[at:at+kv.PageTokens])
		}
	}
}
