// contrast.go draws from what a model knows better than a weaker one, the amateur, which is a guide (contrastive decoding): of the tokens that
// the model finds plausible, those gain that the amateur finds less likely. It is lossy.

package programs

import (
	"context"
	"errors"
	"math"

	"grove/internal/engine"
	"grove/internal/kernel"
	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "contrast", Paper: "Contrastive Decoding, 2022; Contrastive Decoding Improves Reasoning, 2023", Options: "guide=1,alpha=0.1,beta=0.5",
		Open: func(o *options.Options) search.Program {
			return &contrastContrast{guide: o.Int("guide", 1, 1, 16), alpha: float32(o.Float("alpha", .1, 0, 1)), beta: float32(o.Float("beta", .5, 0, 100))}
		},
	})
}

type contrastContrast struct {
	guide       int
	alpha, beta float32
}

// Samples implements [search.Program].
func (*contrastContrast) Samples() int { return 1 }

// Combines implements [search.Combining].
func (*contrastContrast) Combines() bool { return true }

// Check implements [search.Program].
func (c *contrastContrast) Check(p *search.Problem) error { return p.Guided("contrast", c.guide) }

// Run implements [search.Program].
func (c *contrastContrast) Run(ctx context.Context, p *search.Problem) (r *search.Result, err error) {
	amateur, err := p.Guides[c.guide-1].Open(ctx, p, engine.Answer{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, amateur.Close()) }()
	plausible, tokens := 0, 0
	p.Combiner.Combine = func(logits []float32, others [][]float32) {
		plausible += c.combine(logits, others[0])
		tokens++
	}
	if err := p.Combiner.Join(p.First, amateur); err != nil {
		return nil, err
	}
	if r, err = p.DrawOne(ctx, p.Combiner.Next); err == nil {
		r.Figures = map[string]float64{"plausible": float64(plausible) / float64(max(1, tokens))}
	}
	return r, err
}

// combine puts (1+beta)*expert - beta*amateur in place of the expert's logits, of tokens at least alpha times as likely to the expert as the likeliest, and
// forbids the others, and those that only one of the models has. It returns how many there are. Logits are log-probabilities up to a number that is the same for all tokens, which changes nothing.
func (c *contrastContrast) combine(expert, amateur []float32) (plausible int) {
	forbidden := float32(math.Inf(-1))
	most := forbidden
	for _, l := range expert {
		most = max(most, l)
	}
	least := most + kernel.Log32(c.alpha)
	for id, l := range expert {
		switch {
		case l < least || l == forbidden || amateur[id] == forbidden:
			expert[id] = forbidden
		default:
			plausible++
			expert[id] = float32((1+c.beta)*l) - float32(c.beta*amateur[id])
		}
	}
	return plausible
}
