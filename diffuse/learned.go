package diffuse

import (
	"slices"

	"grove/internal/kernel"
	"grove/internal/options"
)

func init() {
	Register(Info{
		Name: "learned", Paper: "Learn2PD, 2025: the places that a filter of the model's file says are right, and those of static", Options: "p=0.96",
		Open: func(o *options.Options) Policy { return &learned{p: o.Float("p", 0.96, 0.001, 0.999)} },
	})
}

// Filter says of each place of a block whether its likeliest token is right.
type Filter interface {
	// Block returns the most places of a block.
	Block() int
	// Score writes the logits that places are right, of the probabilities of their likeliest tokens; behind the end of a shorter block these are 0.
	Score(logits, probabilities []float32)
}

// learned fixes what a filter accepts, and what static does.
type learned struct {
	static
	p              float64 // from which on the filter accepts
	filter         Filter
	likely, logits []float32
}

// take takes the filter of settings.
func (p *learned) take(s *Settings) error {
	switch {
	case s.Filter == nil:
		return s.fault("policy", "the policy learned goes by a filter (tensors diffusion.filter.N), and the model's file has none; choose another policy")
	case s.Blocks != "":
		return s.fault("policy", "the policy learned with blocks %q, whose lengths its filter does not know; choose one of them", s.Blocks)
	case s.Block > s.Filter.Block():
		return s.fault("block", "blocks of %d tokens; the model's filter, by which the policy learned goes, knows blocks of up to %d", s.Block, s.Filter.Block())
	}
	p.filter, p.likely, p.logits = s.Filter, make([]float32, s.Filter.Block()), make([]float32, s.Filter.Block())
	return nil
}

// Choose implements [Policy].
func (p *learned) Choose(d *Decision, v *View) {
	clear(p.likely)
	for at := v.First; at < v.End; at++ {
		p.likely[at-v.First] = float32(v.Proposals[at].Top)
	}
	p.filter.Score(p.logits, p.likely)
	least := kernel.Log64(p.p / (1 - p.p))
	due := best(v, max(1, counts(p.masks, v.Pass, v.Passes)), scoreOf(p.order, v))
	for _, at := range v.Masked {
		if float64(p.logits[at-v.First]) > least || slices.Contains(due, at) {
			d.Fix = append(d.Fix, at)
		}
	}
}
