// proxy.go steers a model by the difference between two smaller ones, which are guides: one that was tuned, and the same before that (proxy tuning). It is
// lossy.

package programs

import (
	"context"
	"errors"
	"math"

	"grove/internal/engine"
	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "proxy", Paper: "Tuning Language Models by Proxy, 2024", Options: "tuned=1,untuned=2,weight=1",
		Open: func(o *options.Options) search.Program {
			p := &proxy{o.Int("tuned", 1, 1, 16), o.Int("untuned", 2, 1, 16), float32(o.Float("weight", 1, -100, 100))}
			if p.tuned == p.untuned {
				o.Fail("tuned and untuned are both guide %d; they must differ", p.tuned)
			}
			return p
		},
	})
}

type proxy struct {
	tuned, untuned int
	weight         float32
}

// Samples implements [search.Program].
func (*proxy) Samples() int { return 1 }

// Combines implements [search.Combining].
func (*proxy) Combines() bool { return true }

// Check implements [search.Program].
func (x *proxy) Check(p *search.Problem) error {
	if err := p.Guided("proxy", x.tuned); err != nil {
		return err
	}
	return p.Guided("proxy", x.untuned)
}

// Run implements [search.Program].
func (x *proxy) Run(ctx context.Context, p *search.Problem) (r *search.Result, err error) {
	var guides []*engine.Sequence
	defer func() {
		for _, s := range guides {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, number := range []int{x.tuned, x.untuned} {
		s, err := p.Guides[number-1].Open(ctx, p, engine.Answer{})
		if err != nil {
			return nil, err
		}
		guides = append(guides, s)
	}
	p.Combiner.Combine = func(logits []float32, others [][]float32) { x.combine(logits, others[0], others[1]) }
	if err := p.Combiner.Join(p.First, guides...); err != nil {
		return nil, err
	}
	return p.DrawOne(ctx, p.Combiner.Next)
}

// combine adds the weighed difference of the guides' logits to the model's. A token that one of the models does not have is forbidden.
func (x *proxy) combine(logits, tuned, untuned []float32) {
	forbidden := float32(math.Inf(-1))
	for id, l := range logits {
		if l == forbidden || tuned[id] == forbidden || untuned[id] == forbidden {
			logits[id] = forbidden
			continue
		}
		logits[id] = l + float32(x.weight*(tuned[id]-untuned[id]))
	}
}
