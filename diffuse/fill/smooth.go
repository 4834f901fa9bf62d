// smooth.go is the policy of iteration smoothing (dInfer, Ma et al. 2025): the row of a mask reads, beside the embedding of the mask, the embedding that the pass before expected in its
// place, and the threshold of the passes falls.

package fill

import (
	"grove/diffuse"
	"grove/internal/forest"
	"grove/internal/options"
)

func init() {
	diffuse.Register(diffuse.Info{
		Name: "smooth", Paper: "dInfer, Ma et al. 2025: the threshold, which falls from 1 by decay each pass, and masks that read what the pass before expected",
		Options: "p=0.9, first=0.15, growth=0.02, most=0.3, decay=0.02",
		Open: func(o *options.Options) diffuse.Policy {
			return &policy{
				least: o.Float("p", 0.9, 0, 2), first: o.Float("first", 0.15, 0, 1), growth: o.Float("growth", 0.02, 0, 1), most: o.Float("most", 0.3, 0, 1), decay: o.Float("decay", 0.02, 0, 1),
			}
		},
	})
}

// policy is a [diffuse.Conditioner]. Its passes are those of the canvas, not of a block.
type policy struct {
	least, first, growth, most, decay float64
	passes                            int
	priors                            []forest.Prior // by place of the canvas
}

// Begin implements [diffuse.Policy].
func (*policy) Begin(*diffuse.View) {}

// Revises implements [diffuse.Policy].
func (*policy) Revises() bool { return false }

// Gave implements [diffuse.Conditioner].
func (p *policy) Gave(place int, logits []float32) {
	for len(p.priors) <= place {
		p.priors = append(p.priors, forest.Prior{Temperature: 1})
	}
	prior := &p.priors[place]
	prior.Logits = append(prior.Logits[:0], logits...)
	prior.Weight = float32(min(p.first+p.growth*float64(p.passes), p.most))
}

// Prior implements [diffuse.Conditioner].
func (p *policy) Prior(place int) *forest.Prior {
	if place >= len(p.priors) || p.priors[place].Weight == 0 {
		return nil
	}
	return &p.priors[place]
}

// Choose implements [diffuse.Policy]: all places of the threshold and more, and the surest.
func (p *policy) Choose(d *diffuse.Decision, v *diffuse.View) {
	threshold := max(1-p.decay*float64(p.passes), p.least)
	p.passes++
	best := -1
	for _, at := range v.Masked {
		if v.Proposals[at].P >= threshold {
			d.Fix = append(d.Fix, at)
		}
		if best < 0 || v.Proposals[at].P > v.Proposals[best].P {
			best = at
		}
	}
	if len(d.Fix) == 0 && best >= 0 {
		d.Fix = append(d.Fix, best)
	}
}
