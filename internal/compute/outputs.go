// outputs.go holds what rows of a step give: their logits, largest entries, states and streams, and room for copies of these.

package compute

import (
	"math"
	"time"
	"unsafe"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/text/token"
)

// TopEntry is one of the largest logits of a row.
type TopEntry struct {
	ID    token.ID
	Logit float32
}

// Result holds the outputs of one row. Its slices are valid until the next step.
type Result struct {
	Logits []float32   // of the vocabulary, masked outside Want.Subset, if wanted
	Top    []TopEntry  // the largest, falling, ties by id, if wanted
	LSE    float32     // log-sum-exp of all logits, if Top was wanted: log p(id) = logit - LSE
	State  []float32   // the stream behind the final norm, if wanted
	Hidden [][]float32 // the residual stream: the embedding if wanted, then that after each wanted layer, ascending
}

// OutputArena is room for copies of what rows gave: a [Result] is the executor's only until the next step. The room is used
// again after [OutputArena.Reset]. The zero value is ready; an Arena is for one goroutine at a time.
type OutputArena struct {
	top    []TopEntry
	floats []float32
	hidden [][]float32
}

// Reset makes the room of all copies free again.
func (a *OutputArena) Reset() { a.top, a.floats, a.hidden = a.top[:0], a.floats[:0], a.hidden[:0] }

// Reserve makes room for so many values, entries of tops and hidden states altogether, and no more, so that copying them moves nothing. It
// is called behind Reset.
func (a *OutputArena) Reserve(floats, tops, hidden int) {
	if cap(a.floats) < floats {
		a.floats = make([]float32, 0, floats)
	}
	if cap(a.top) < tops {
		a.top = make([]TopEntry, 0, tops)
	}
	if cap(a.hidden) < hidden {
		a.hidden = make([][]float32, 0, hidden)
	}
}

// Bytes returns the room that was made.
func (a *OutputArena) Bytes() int {
	return 4*cap(a.floats) + int(unsafe.Sizeof(TopEntry{}))*cap(a.top) + int(unsafe.Sizeof([]float32{}))*cap(a.hidden)
}

// Keep returns a copy of what a row gave, valid until Reset. Where the room is moved, the copies made before stay where
// they were.
func (a *OutputArena) Keep(from *Result) Result {
	own := Result{Logits: a.Copy(from.Logits), State: a.Copy(from.State), LSE: from.LSE}
	n := len(a.top)
	a.top = append(a.top, from.Top...)
	own.Top = a.top[n:len(a.top):len(a.top)]
	n = len(a.hidden)
	for _, h := range from.Hidden {
		a.hidden = append(a.hidden, a.Copy(h))
	}
	own.Hidden = a.hidden[n:len(a.hidden):len(a.hidden)]
	return own
}

// Copy returns a copy of values, valid until Reset; nil stays nil.
func (a *OutputArena) Copy(v []float32) []float32 {
	if v == nil {
		return nil
	}
	n := len(a.floats)
	a.floats = append(a.floats, v...)
	return a.floats[n:len(a.floats):len(a.floats)]
}

// WantSeconds measures what a row's wants take beside the logits, for a vocabulary of n tokens: the shortest of a few runs on made-up logits.
// States and the stream are copied, which takes next to nothing.
func WantSeconds(want forest.Want, n int) float64 {
	if want.Top == 0 || n == 0 {
		return 0
	}
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = float32(i * 7919 % 1009) // in no order
	}
	top, best := make([]TopEntry, 0, want.Top), math.Inf(1)
	for range 8 {
		start := time.Now()
		kernel.LogSumExp(logits)
		Top(top, logits, min(want.Top, n))
		best = min(best, time.Since(start).Seconds())
	}
	return best
}

// Top appends the n largest logits to dst, falling, ties by id.
func Top(dst []TopEntry, logits []float32, n int) []TopEntry {
	for id, l := range logits {
		if len(dst) == n && !(l > dst[n-1].Logit) {
			continue
		}
		if len(dst) < n {
			dst = append(dst, TopEntry{})
		}
		at := len(dst) - 1
		for at > 0 && l > dst[at-1].Logit {
			dst[at] = dst[at-1]
			at--
		}
		dst[at] = TopEntry{token.ID(id), l}
	}
	return dst
}
