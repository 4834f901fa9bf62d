package compute

import (
	"fmt"

	"grove/internal/kernel"
)

// Routing says which experts each row goes to. Between [Exec.Route] and [Exec.MixExperts], buffers
// have one row for each pair of a row and one of its experts, sorted by expert, so that an expert's
// matrix is read once for all of its rows.
type Routing struct {
	used    int
	source  []int32   // pair -> row
	weights []float32 // row, rank -> weight
	pair    []int32   // row, rank -> pair
	start   []int32   // expert -> first pair; one more at the end
	busy    []int32   // experts with pairs

	chosen []int32 // row, rank -> expert
}

// Route picks for each row the used experts with the largest logits, ties to the lowest number, and
// weighs them by their softmax among all experts, scaled to sum to 1. The ranks go by falling logit. A
// logit that is not finite fails the step.
func (x *Exec) Route(logits Buf, used int) *Routing {
	r := &x.routing
	n, experts := logits.rows, logits.width
	r.used = used
	r.chosen, r.weights = grow(r.chosen, n*used), grow(r.weights, n*used)
	r.pair, r.source = grow(r.pair, n*used), grow(r.source, n*used)
	r.start, r.busy = grow(r.start, experts+1), r.busy[:0]
	if _, finite := kernel.MaxAbsFinite(logits.f[:n*experts]); !finite {
		// An expert that is not chosen would hide it.
		x.fail(fmt.Errorf("compute: the logits of a router: %w", ErrNotFinite))
	}
	for i := range n {
		r.choose(i, logits.row(i))
	}
	r.sortPairs(n, experts)
	x.touched += len(r.busy)
	return r
}

// choose picks the experts of row i. A NaN is never larger, so the choice is always made.
func (r *Routing) choose(i int, logits []float32) {
	chosen, weights := r.chosen[i*r.used:(i+1)*r.used], r.weights[i*r.used:(i+1)*r.used]
	for rank := range chosen {
		best := int32(-1)
		for e := range logits {
			if (best < 0 || logits[e] > logits[best]) && !contains(chosen[:rank], int32(e)) {
				best = int32(e)
			}
		}
		chosen[rank] = best
	}
	var sum float32
	for rank, e := range chosen {
		weights[rank] = kernel.Exp32(logits[e] - logits[chosen[0]])
		sum += weights[rank]
	}
	for rank := range weights {
		weights[rank] /= sum
	}
}

func contains(s []int32, v int32) bool {
	for _, e := range s {
		if e == v {
			return true
		}
	}
	return false
}

// sortPairs gives each pair its place, by expert and then by row.
func (r *Routing) sortPairs(n, experts int) {
	clear(r.start)
	for _, e := range r.chosen[:n*r.used] {
		r.start[e+1]++
	}
	for e := range experts {
		if r.start[e+1] > 0 {
			r.busy = append(r.busy, int32(e))
		}
		r.start[e+1] += r.start[e]
	}
	for i, e := range r.chosen[:n*r.used] {
		p := r.start[e]
		r.start[e]++
		r.pair[i], r.source[p] = p, int32(i/r.used)
	}
	copy(r.start[1:], r.start[:experts])
	r.start[0] = 0
}

// Experts returns the rows of a once for each expert that they go to, in the order of r's pairs.
func (x *Exec) Experts(a Buf, r *Routing) Buf {
	dst := x.alloc(a.rows*r.used, a.width)
	x.rowTask = rowTask{kind: gatherRows, x: x, dst: dst, a: a, routing: r}
	x.runRows(dst.rows, a.width)
	return dst
}

// LinearExperts returns the product of each pair with its expert's matrix (N1).
func (x *Exec) LinearExperts(m *Matrix, a Buf, r *Routing) Buf {
	if a.width != m.k {
		panic("compute: a product of rows and a matrix of different widths")
	}
	dst := x.alloc(a.rows, m.out)
	t := &x.expertTask
	*t = expertTask{x: x, m: m, dst: dst, r: r}
	if m.format.Quantized {
		t.rows = *x.quantize(a)
	} else {
		t.rows = kernel.Rows{N: a.rows, K: a.width, F: a.f}
	}
	groups := m.groups()
	t.chunk = chunkOf(m, max(1, a.rows/max(1, len(r.busy))), x.pool.Threads())
	t.chunks = (groups + t.chunk - 1) / t.chunk
	x.pool.Run(len(r.busy)*t.chunks, t)
	return dst
}

// expertTask is a product with several experts; an item is chunk groups of outputs of one of them.
type expertTask struct {
	x             *Exec
	m             *Matrix
	rows          kernel.Rows
	dst           Buf
	r             *Routing
	chunk, chunks int
}

func (t *expertTask) Do(worker, item int) {
	m := t.m
	e := int(t.r.busy[item/t.chunks])
	lo, hi := int(t.r.start[e]), int(t.r.start[e+1])
	s := &t.x.expertRows[worker]
	*s = kernel.Rows{N: hi - lo, K: m.k, F: t.rows.F[lo*m.k : hi*m.k]}
	if m.format.Quantized {
		b := m.k / kernel.QBlock
		s.Q, s.D, s.Sum = t.rows.Q[lo*m.k:hi*m.k], t.rows.D[lo*b:hi*b], t.rows.Sum[lo*b:hi*b]
	}
	first := item % t.chunks * t.chunk
	m.multiply(t.dst.f[lo*m.out:], t.dst.width, e, first, min(first+t.chunk, m.groups()), s, &t.x.packs[worker])
}

// MixExperts returns for each row the weighted sum of its experts' results, in the order of its ranks.
func (x *Exec) MixExperts(a Buf, r *Routing) Buf {
	dst := x.alloc(a.rows/r.used, a.width)
	x.rowTask = rowTask{kind: sumExperts, x: x, dst: dst, a: a, routing: r}
	x.runRows(dst.rows, a.width*r.used)
	return dst
}

func (r *Routing) sum(dst []float32, a Buf, i int) {
	clear(dst)
	for rank := range r.used {
		kernel.AddScaled(dst, r.weights[i*r.used+rank], a.row(int(r.pair[i*r.used+rank])))
	}
}
