package block

import (
	"context"

	"grove/compute"
	"grove/method"
	"grove/method/grow"
	"grove/sample"
)

const ranks, drafts = 4, 32 // candidates of a depth, and drafts of a tree

// product drafts with a module whose rows know nothing of the drafts before them.
type product struct {
	grow.BlockSource
	text       *method.History
	vocabulary int
	sampler    *sample.Chain
	tree       grow.Product
	room       []sample.Candidate
	lists      [][]sample.Candidate // by depth
}

// newProduct returns a drafter of a module without an order of drafts.
func newProduct(m *block) method.Drafter {
	return &product{BlockSource: grow.NewBlockSource(m.module, m.rows, m.vocabulary), vocabulary: m.vocabulary}
}

// Begin implements [method.Drafter].
func (d *product) Begin(h *method.History) (err error) {
	d.text = h
	if err := d.BlockSource.Begin(h); err != nil {
		return err
	}
	d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.vocabulary)
	return err
}

// Draft implements [method.Drafter].
func (d *product) Draft(ctx context.Context, t *method.Tree) error {
	first, n, err := d.Run(ctx, t.Depth())
	if n == 0 || err != nil {
		return err
	}
	if d.room == nil {
		d.room, d.lists = make([]sample.Candidate, d.Most*ranks), make([][]sample.Candidate, 0, d.Most)
	}
	d.lists = d.lists[:0]
	for i := range n {
		logits := d.Logits(first + i)
		best, err := d.sampler.Candidates(d.room[i*ranks:][:ranks], logits, len(d.text.IDs())-d.text.SourceLen+i)
		if err != nil {
			return err
		}
		d.lists = append(d.lists, known(best, logits))
	}
	d.tree.Grow(t, d.lists, min(t.Room(), drafts))
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
