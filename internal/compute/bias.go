package compute

import (
	"errors"
	"fmt"

	"grove/internal/kernel"
	"grove/internal/kv"
)

// checkBias returns an error where the biases of a layer's scores do not fit its heads.
func (c *Attention) checkBias() error {
	switch {
	case c.Slopes.F == nil && c.Relative == nil:
		return nil
	case c.Slopes.F != nil && len(c.Slopes.F) != c.Heads, c.Relative != nil && c.Relative.Heads() != c.Heads:
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
			kernel.Add(s, r.Of(h, distance))
		}
		if slopes := t.c.Slopes.F; slopes != nil {
			at := len(t.distances)/2 + distance
			kernel.AddScaled(s, -slopes[h], t.distances[at:at+kv.PageTokens])
		}
	}
}
