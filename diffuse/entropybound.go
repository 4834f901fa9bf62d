package diffuse

import (
	"fmt"

	"grove/internal/options"
)

// usualBound is the sum of entropies where nothing names one.
const usualBound = 0.1

func init() {
	Register(Info{
		Name: "entropy-bound", Paper: "EB-Sampler, Ben-Hamu et al. 2025: the places of the lowest entropies, as long as those before have a sum up to a bound; DiffusionGemma's", Options: "bound=0.1",
		Open: func(o *options.Options) Policy { return &entropyBound{bound: o.Float("bound", -1, 0, 1e6)} },
	})
}

// entropyBound fixes the places of the lowest entropies before which the sum of the entropies is at most a bound.
type entropyBound struct {
	stateless
	bound float64 // below 0: none is named
}

// Choose implements [Policy].
func (p *entropyBound) Choose(d *Decision, v *View) {
	bound := p.bound
	if bound < 0 {
		bound = usualBound
	}
	ranked := best(v, len(v.Masked), scoreOf("entropy", v))
	d.Fix = append(d.Fix, withinBound(ranked, bound, func(at int) float64 { return v.Proposals[at].Entropy })...)
}

// BoundOf returns the bound that a policy of canvases of random tokens names, and other where it names none; "" is entropy-bound. Errors: a policy of masks, those of
// [OpenPolicy].
func BoundOf(policy string, other float64) (float64, error) {
	if policy == "" {
		return other, nil
	}
	p, err := OpenPolicy(policy)
	if err != nil {
		return 0, err
	}
	b, ok := p.(*entropyBound)
	switch {
	case !ok:
		return 0, fmt.Errorf("diffuse: policy %.40s chooses masks, and the canvas has none; use entropy-bound", policy)
	case b.bound < 0:
		return other, nil
	}
	return b.bound, nil
}
