// Package prior computes the embeddings that distributions over the vocabulary expect: the sum of all tokens' embeddings, weighted by their probabilities
// (DiffusionGemma, Google 2026).
//
// A sum runs over the tokens in order, in float32, and leaves out those that are together less than half of its last bit. It depends on its distribution alone
// (N1, N3): a thread computes some of them by itself.
package prior

import (
	"slices"

	"grove/compute/weight"
	"grove/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
)

// band is the number of distributions that share the unpacked embedding of a token.
const band = 8

// A Task computes some expected embeddings. The zero value is ready; its buffers are kept. It is for one step at a time.
type Task struct {
	rows    []row
	table   *weight.Matrix
	scale   float32
	scratch []matmul.Scratch
	one     []float32 // by worker: the embedding of a token
}

// row is a distribution.
type row struct {
	logits     []float32
	top, least float32 // the largest logit, and the least that counts
	inverse    float64 // of the temperature
	sum        float64 // of exp((logit-top)/temperature)
	dst        []float32
}

// Reset begins a set of distributions.
func (t *Task) Reset() { t.rows = t.rows[:0] }

// Add adds a distribution. Its expected embedding is written to dst.
func (t *Task) Add(p *forest.Prior, dst []float32) {
	t.rows = append(t.rows, row{logits: p.Logits, inverse: 1 / float64(p.Temperature), dst: dst})
}

// Run computes the expected embeddings, times scale, of those that were added. scratch is that of each worker of the pool.
func (t *Task) Run(pool *par.Pool, table *weight.Matrix, scale float32, scratch []matmul.Scratch) {
	t.table, t.scale, t.scratch = table, scale, scratch
	n := pool.Threads() * table.In()
	t.one = slices.Grow(t.one[:0], n)[:n]
	pool.Run((len(t.rows)+band-1)/band, t)
}

// Do implements [par.Task]: an item is a band of distributions.
func (t *Task) Do(worker, item int) {
	rows := t.rows[item*band : min((item+1)*band, len(t.rows))]
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
			kernel.AddScaled(r.dst, float32(r.weight(id)/r.sum), one)
		}
	}
	for i := range rows {
		kernel.Scale(rows[i].dst, t.scale)
	}
}

// begin sums the weights up.
func (r *row) begin() {
	clear(r.dst)
	r.top = slices.Max(r.logits)
	// Of V tokens, those below 2^-25/V of the likeliest are together less than half of the last of 24 bits.
	r.least = r.top - float32((float64(25*kernel.Log64(2))+kernel.Log64(float64(len(r.logits))))/r.inverse)
	r.sum = 0
	for id, l := range r.logits {
		if l >= r.least {
			r.sum += r.weight(id)
		}
	}
}

// weight is a token's probability times the sum.
func (r *row) weight(id int) float64 {
	return kernel.Exp64((float64(r.logits[id]) - float64(r.top)) * r.inverse)
}
