package diffuse

import "grove/internal/options"

func init() {
	Register(Info{
		Name: "dimple", Paper: "Dimple, Yu et al. 2025: all places that are sure enough, or those of a schedule of times", Options: "p=0.95, order=confidence, eps=0.001",
		Open: func(o *options.Options) Policy {
			return &dimple{p: o.Float("p", 0.95, 0, 1), timestep: timestep{order: o.Word("order", "confidence", "entropy", "margin", "random", "left"), eps: o.Float("eps", 1e-3, 1e-6, 0.5)}}
		},
	})
	Register(Info{
		Name: "rcr", Paper: "RCR, 2025: all places are filled, and those filled least surely are masks again", Options: "",
		Open: func(*options.Options) Policy { return rcr{} },
	})
	Register(Info{
		Name: "remdm", Paper: "ReMDM, Wang et al. 2025: static, and before the end some of the least sure tokens are drawn anew", Options: "again=4, places=1",
		Open: func(o *options.Options) Policy {
			return &remdm{again: o.Int("again", 4, 0, 1024), places: o.Int("places", 1, 1, 1024)}
		},
	})
}

// dimple fixes the masks above a probability. Where there are none it goes on to the first later time of the schedule that fixes some, as if as many masks were left as are.
type dimple struct {
	timestep
	p float64
}

// Choose implements [Policy].
func (p *dimple) Choose(d *Decision, v *View) {
	if v.Pass >= v.Passes-1 {
		d.Fix = append(d.Fix, v.Masked...)
		return
	}
	for _, at := range v.Masked {
		if v.Proposals[at].P > p.p {
			d.Fix = append(d.Fix, at)
		}
	}
	if len(d.Fix) > 0 {
		return
	}
	n, now := len(v.Masked), float64(len(v.Masked))/float64(v.End-v.First)
	for pass := v.Pass + 1; pass <= v.Passes; pass++ {
		if time := p.time(pass, v.Passes); time < now {
			if n = int(float64(len(v.Masked)) * (1 - time/now)); n >= 1 {
				break
			}
		}
	}
	d.Fix = append(d.Fix, best(v, max(1, n), scoreOf(p.order, v))...)
}

// rcr fills all masks in each pass, and makes those that were filled least surely masks again, so that as many are left as a schedule says. What is final is known at the
// block's end.
type rcr struct{}

// Begin implements [Policy].
func (rcr) Begin(*View) {}

// Revises implements [Policy].
func (rcr) Revises() bool { return true }

// Choose implements [Policy].
func (rcr) Choose(d *Decision, v *View) {
	keep := v.End - v.First
	if v.Pass < v.Passes-1 {
		keep = 0
		for pass := range v.Pass + 1 {
			keep += counts(v.End-v.First, pass, v.Passes)
		}
	}
	sure := func(at int) float64 {
		if v.Canvas[at].ID == v.Mask {
			return v.Proposals[at].P
		}
		return v.Canvas[at].P
	}
	all := make([]int, 0, v.End-v.First)
	for at := v.First; at < v.End; at++ {
		all = append(all, at)
	}
	rank(all, sure)
	for i, at := range all {
		switch mask := v.Canvas[at].ID == v.Mask; {
		case mask && i < keep:
			d.Fix = append(d.Fix, at)
		case !mask && i >= keep:
			d.Mask = append(d.Mask, at)
		}
	}
}

// remdm is static up to seven of eight places of a block. Then, some times, the tokens that were fixed least surely are masks for a pass and are fixed anew.
type remdm struct {
	static
	again, places int
	done          int // of again
	opened        int // places that are masks for a pass
}

// Begin implements [Policy].
func (p *remdm) Begin(v *View) {
	p.static.Begin(v)
	p.done, p.opened = 0, 0
}

// Revises implements [Policy].
func (p *remdm) Revises() bool { return true }

// Choose implements [Policy].
func (p *remdm) Choose(d *Decision, v *View) {
	size := v.End - v.First
	if p.opened > 0 {
		d.Fix, p.opened = append(d.Fix, best(v, p.opened, v.confidence)...), 0
	} else {
		d.Fix = append(d.Fix, best(v, max(1, counts(size, v.Pass, v.Passes)), v.confidence)...)
	}
	left := len(v.Masked) - len(d.Fix)
	if left*8 > size || p.done == p.again {
		return
	}
	fixed := v.places(nil, false)
	rank(fixed, func(at int) float64 { return -v.Canvas[at].P })
	d.Mask = append(d.Mask, fixed[:min(p.places, len(fixed))]...)
	p.opened = len(d.Mask)
	p.done++
}
