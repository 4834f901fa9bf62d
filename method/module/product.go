package module

import (
	"context"

	"grove/internal/compute"
	"grove/internal/sample"
	"grove/method"
	"grove/method/grow"
)

// Ranked is a source of one row of logits for each depth behind the text, none of which knows the drafts of the others.
type Ranked interface {
	Following
	// Depths runs the rows of depth drafts at most, and returns how many depths have logits, from the place first of the pass on; 0: nothing is drafted now.
	Depths(ctx context.Context, depth int) (first, n int, err error)
	// Logits returns the logits at a place of the last pass, valid until the next.
	Logits(i int) []float32
	// Most returns the most depths.
	Most() int
}

// ProductDrafter makes trees of the candidates of each depth: a path's probability is the product of its tokens'. It is a complete [method.Drafter].
type ProductDrafter struct {
	Ranked
	wants   method.Wants
	ranks   int // candidates of a depth
	drafts  int // of a tree at most
	words   int // of the target's vocabulary
	sampler *sample.Chain
	text    *method.History
	room    []sample.Candidate
	lists   [][]sample.Candidate // by depth
	tree    grow.Product
	err     error // of an update
}

// NewProduct returns a drafter with a source that wants something of the target's rows, of so many candidates a depth and drafts at most, for the vocabulary of a target.
func NewProduct(source Ranked, wants method.Wants, ranks, drafts, vocabulary int) *ProductDrafter {
	return &ProductDrafter{Ranked: source, wants: wants, ranks: ranks, drafts: drafts, words: vocabulary}
}

// Wants implements [method.Wanter].
func (d *ProductDrafter) Wants() method.Wants { return d.wants }

// Begin implements [method.Drafter].
func (d *ProductDrafter) Begin(h *method.History) (err error) {
	d.text, d.err, d.tree.Share = h, nil, nil
	if !h.Noise.Sampling.Greedy() {
		d.tree.Share = share
	}
	if d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.words); err != nil {
		return err
	}
	return d.Ranked.Begin(h)
}

// share returns how often candidates of a rank and a probability are accepted.
func share(t *method.Tree, rank int, p float32) float32 {
	return t.Estimate(grow.Class(rank, p), grow.Belief(rank, p))
}

// Committed implements [method.Drafter].
func (d *ProductDrafter) Committed(r method.Update) { d.err = d.Ranked.Committed(r) }

// Draft implements [method.Drafter].
func (d *ProductDrafter) Draft(ctx context.Context, t *method.Tree) error {
	if d.err != nil {
		return d.err
	}
	first, n, err := d.Depths(ctx, t.Depth())
	if n == 0 || err != nil {
		return err
	}
	if d.room == nil {
		d.room, d.lists = make([]sample.Candidate, d.Most()*d.ranks), make([][]sample.Candidate, 0, d.Most())
	}
	d.lists = d.lists[:0]
	for i := range n {
		logits := d.Logits(first + i)
		best, err := d.sampler.Candidates(d.room[i*d.ranks:][:d.ranks], logits, len(d.text.IDs())-d.text.SourceLen+i)
		if err != nil {
			return err
		}
		d.lists = append(d.lists, known(best, logits))
	}
	d.tree.Grow(t, d.lists, min(t.Room(), d.drafts))
	return nil
}

// known returns the candidates that a module has logits of.
func known(best []sample.Candidate, logits []float32) []sample.Candidate {
	for i, c := range best {
		if logits[c.ID] == compute.Masked {
			return best[:i]
		}
	}
	return best
}

// MemoryFor implements [method.Sized].
func (d *ProductDrafter) MemoryFor(int, sample.Params) method.Memory { return d.Memory(d.Most()) }
