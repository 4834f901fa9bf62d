package diffuse

import "grove/internal/options"

func init() {
	Register(Info{
		Name: "threshold", Paper: "Fast-dLLM, Wu et al. 2025: all places that are sure enough", Options: "p=0.9",
		Open: func(o *options.Options) Policy {
			p := o.Float("p", 0.9, 0, 2)
			return chooser{choose: func(d *Decision, v *View) {
				fixAll(d, v, v.confidence, func(at int) bool { return v.Proposals[at].P >= p })
			}}
		},
	})
	Register(Info{
		Name: "entropy", Paper: "dParallel, Chen et al. 2025: all places of low entropy", Options: "h=0.5",
		Open: func(o *options.Options) Policy {
			h := o.Float("h", 0.5, 0, 100)
			return chooser{choose: func(d *Decision, v *View) {
				fixAll(d, v, scoreOf("entropy", v), func(at int) bool { return v.Proposals[at].Entropy <= h })
			}}
		},
	})
	Register(Info{
		Name: "entropy-sum", Paper: "SDAR, Cheng et al. 2025: the places of the lowest entropies, up to a sum", Options: "bound=0.35",
		Open: func(o *options.Options) Policy {
			bound := o.Float("bound", 0.35, 0, 1e6)
			return chooser{choose: func(d *Decision, v *View) { d.Fix = append(d.Fix, entropySum(v, bound)...) }}
		},
	})
	Register(Info{
		Name: "dynamic", Paper: "SDAR, Cheng et al. 2025: all places above a probability, or as many as are due", Options: "p=0.85",
		Open: func(o *options.Options) Policy { return &dynamic{p: o.Float("p", 0.85, 0, 1)} },
	})
	Register(Info{
		Name: "local-leap", Paper: "LocalLeap, Kong et al. 2025: near a sure place less sure ones too", Options: "p=0.9, near=0.75, radius=4",
		Open: func(o *options.Options) Policy {
			l := leap{p: o.Float("p", 0.9, 0, 1), near: o.Float("near", 0.75, 0, 1), radius: o.Int("radius", 4, 0, 1024)}
			return chooser{choose: l.choose}
		},
	})
	Register(Info{
		Name: "hierarchical", Paper: "dInfer, Ma et al. 2025: the surest place of each run of masks", Options: "low=0.4, high=0.9",
		Open: func(o *options.Options) Policy {
			low, high := o.Float("low", 0.4, 0, 1), o.Float("high", 0.9, 0, 2)
			return chooser{choose: func(d *Decision, v *View) { hierarchical(d, v, low, high) }}
		},
	})
}

// entropySum returns the places of the lowest entropies whose sum is below a bound, one at least.
func entropySum(v *View, bound float64) []int {
	ranked, sum := best(v, len(v.Masked), scoreOf("entropy", v)), 0.0
	for n, at := range ranked {
		if sum += v.Proposals[at].Entropy; sum >= bound {
			return ranked[:max(1, n)]
		}
	}
	return ranked
}

// dynamic fixes all places above a probability where these are as many as the schedule fixes, and those of the schedule otherwise.
type dynamic struct {
	static
	p float64
}

// Choose implements [Policy].
func (p *dynamic) Choose(d *Decision, v *View) {
	for _, at := range v.Masked {
		if v.Proposals[at].P > p.p {
			d.Fix = append(d.Fix, at)
		}
	}
	if due := max(1, counts(p.masks, v.Pass, v.Passes)); len(d.Fix) < due {
		d.Fix = append(d.Fix[:0], best(v, due, v.confidence)...)
	}
}

// leap fixes the surest place, and those above p, or above near within a radius of a mask above p.
type leap struct {
	p, near float64
	radius  int
}

func (l leap) choose(d *Decision, v *View) {
	fixAll(d, v, v.confidence, func(at int) bool {
		p := v.Proposals[at].P
		if p >= l.p {
			return true
		}
		if p < l.near {
			return false
		}
		for _, other := range v.Masked {
			if v.Proposals[other].P >= l.p && max(other-at, at-other) <= l.radius {
				return true
			}
		}
		return false
	})
}

// hierarchical fixes the surest place of each run of masks if it is above low, all above high, and the surest of all.
func hierarchical(d *Decision, v *View, low, high float64) {
	for i := 0; i < len(v.Masked); {
		run, end := v.Masked[i], i+1
		for end < len(v.Masked) && v.Masked[end] == v.Masked[end-1]+1 {
			if v.confidence(v.Masked[end]) > v.confidence(run) {
				run = v.Masked[end]
			}
			end++
		}
		for _, at := range v.Masked[i:end] {
			if p := v.Proposals[at].P; p > high || at == run && p > low {
				d.Fix = append(d.Fix, at)
			}
		}
		i = end
	}
	if len(d.Fix) == 0 {
		d.Fix = append(d.Fix, best(v, 1, v.confidence)...)
	}
}
