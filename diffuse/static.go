package diffuse

import "grove/internal/options"

func init() {
	Register(Info{
		Name: "static", Paper: "LLaDA, Nie et al. 2025: as many places in each pass, the surest first", Options: "order=confidence",
		Open: func(o *options.Options) Policy {
			return &static{order: o.Word("order", "confidence", "margin", "entropy", "random", "left")}
		},
	})
	Register(Info{
		Name: "timestep", Paper: "Dream, Ye et al. 2025: places by a schedule of times", Options: "order=entropy, eps=0.001",
		Open: func(o *options.Options) Policy {
			return &timestep{order: o.Word("order", "entropy", "confidence", "margin", "random", "left"), eps: o.Float("eps", 1e-3, 1e-6, 0.5)}
		},
	})
}

// scoreOf returns the score of a place by the name of an order.
func scoreOf(order string, v *View) func(at int) float64 {
	switch order {
	case "margin":
		return func(at int) float64 { return v.Proposals[at].P - v.Proposals[at].Second }
	case "entropy":
		return func(at int) float64 { return -v.Proposals[at].Entropy }
	case "random":
		return v.Number
	case "left":
		return func(at int) float64 { return -float64(at) }
	}
	return v.confidence
}

// static fixes as many places in each pass of a block, the best by an order.
type static struct {
	stateless
	order string
	masks int // of the block at its beginning
}

// Begin implements [Policy].
func (p *static) Begin(v *View) { p.masks = v.End - v.First }

// Choose implements [Policy].
func (p *static) Choose(d *Decision, v *View) {
	d.Fix = append(d.Fix, best(v, max(1, counts(p.masks, v.Pass, v.Passes)), scoreOf(p.order, v))...)
}

// timestep fixes the share of the masks that its schedule of times, which fall from 1 to eps, gives a pass. That rounds down, so that a pass may fix none.
type timestep struct {
	stateless
	order string
	eps   float64
}

// Choose implements [Policy].
func (p *timestep) Choose(d *Decision, v *View) {
	d.Fix = append(d.Fix, best(v, p.count(len(v.Masked), v.Pass, v.Passes), scoreOf(p.order, v))...)
}

// count returns how many of some masks a pass fixes.
func (p *timestep) count(masks, pass, passes int) int {
	if pass >= passes-1 {
		return masks
	}
	return int(float64(masks) * (1 - p.time(pass+1, passes)/p.time(pass, passes)))
}

// time returns the time before a pass, from 1 to eps.
func (p *timestep) time(pass, passes int) float64 {
	return 1 + (p.eps-1)*float64(pass)/float64(passes)
}
