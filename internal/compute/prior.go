// prior.go computes the embeddings that distributions over the vocabulary expect: the sum of all tokens' embeddings, weighted by their probabilities
// (DiffusionGemma, Google 2026).
//
// A sum runs over the tokens in order, in float32, and leaves out those that are together less than half of its last bit. It depends on its distribution alone
// (N1, N3): a thread computes some of them by itself.

package compute

import (
	"slices"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
)

// The distributions of an item share the unpacked embeddings of tokens: leastBand of them at least, and no more than have cached values together.
const (
	leastBand = 8
	cached    = 64 << 10
)

// A PriorTask computes some expected embeddings. The zero value is ready; its buffers are kept. It is for one step at a time.
type PriorTask struct {
	rows    []row
	table   *weight.Matrix
	scale   float32
	scratch []matmul.Scratch
	one     []float32 // by worker: the embedding of a token
	sums    []float32 // of the rows that add to others
	band    int       // distributions of an item
}

// row is a distribution.
type row struct {
	logits     []float32
	top, least float32 // the largest logit, and the least that counts
	inverse    float64 // of the temperature
	sum        float64 // of the weights, exp((logit-top)/temperature)
	dst        []float32
	to         []float32 // to which dst is added with a weight; nil: it is the result
	weight     float32
}

// Reset begins a set of distributions.
func (t *PriorTask) Reset() { t.rows = t.rows[:0] }

// Add adds a distribution. Its expected embedding is written to dst, or added to it with the weight that the distribution has.
func (t *PriorTask) Add(p *forest.Prior, dst []float32) {
	r := row{logits: p.Logits, inverse: 1 / float64(p.Temperature), dst: dst}
	if p.Weight != 0 {
		r.to, r.weight = dst, p.Weight
	}
	t.rows = append(t.rows, r)
}

// Run computes the expected embeddings, times scale, of those that were added. scratch is that of each worker of the pool.
func (t *PriorTask) Run(pool *par.Pool, table *weight.Matrix, scale float32, scratch []matmul.Scratch) {
	if len(t.rows) == 0 {
		return
	}
	t.table, t.scale, t.scratch = table, scale, scratch
	width := table.In()
	t.sums = slices.Grow(t.sums[:0], len(t.rows)*width)[:len(t.rows)*width]
	for i := range t.rows {
		if t.rows[i].to != nil {
			t.rows[i].dst = t.sums[i*width : (i+1)*width]
		}
	}
	n := pool.Threads() * table.In()
	t.one = slices.Grow(t.one[:0], n)[:n]
	t.band = max(leastBand, min(cached/table.In(), (len(t.rows)+pool.Threads()-1)/pool.Threads()))
	pool.Run((len(t.rows)+t.band-1)/t.band, t)
}

// Do implements [par.Task].
func (t *PriorTask) Do(worker, item int) {
	rows := t.rows[item*t.band : min((item+1)*t.band, len(t.rows))]
	for i := range rows {
		rows[i].begin()
	}
	n := t.table.In()
	one := t.one[worker*n : (worker+1)*n]
	for id := range t.table.Out() {
		unpacked := false
		for i := range rows {
			r := &rows[i]
			if r.logits[id] < r.least {
				continue
			}
			if !unpacked {
				t.table.Embedding(one, id, &t.scratch[worker])
				unpacked = true
			}
			w := kernel.Exp32(float32((float64(r.logits[id]) - float64(r.top)) * r.inverse))
			r.sum += float64(w)
			kernel.AddScaled(r.dst, w, one)
		}
	}
	for i := range rows {
		r := &rows[i]
		if kernel.Scale(r.dst, float32(float64(t.scale)/r.sum)); r.to != nil {
			kernel.AddScaled(r.to, r.weight, r.dst)
		}
	}
}

// begin clears the sums, and finds out which tokens count.
func (r *row) begin() {
	clear(r.dst)
	r.top, r.sum = slices.Max(r.logits), 0
	// Of V tokens, those below 2^-25/V of the likeliest are together less than half of the last of 24 bits.
	r.least = r.top - float32((float64(25*kernel.Log64(2))+kernel.Log64(float64(len(r.logits))))/r.inverse)
}
