package diffuse

import (
	"slices"

	"grove/internal/kernel"
	"grove/internal/options"
	"grove/internal/text/token"
)

func init() {
	Register(Info{
		Name: "credit", Paper: "CreditDecoding, 2025: tokens that were proposed again and again count more", Options: "p=0.9, alpha=0.7, beta=0.8, gamma=0.2",
		Open: func(o *options.Options) Policy {
			return &credit{p: o.Float("p", 0.9, 0, 2), alpha: o.Float("alpha", 0.7, 0, 10), beta: o.Float("beta", 0.8, 0, 1), gamma: o.Float("gamma", 0.2, 0, 10)}
		},
	})
	Register(Info{
		Name: "ccd", Paper: "CCD, 2025: all of the surest places that were among these in the pass before, with the same token", Options: "warm=5, ratio=4, wide=0",
		Open: func(o *options.Options) Policy {
			return &coherent{warm: o.Int("warm", 5, 1, 10000), ratio: o.Float("ratio", 4, 0, 100), fixed: o.Int("wide", 0, 0, 10000)}
		},
	})
}

// credit adds to the logit of a token what it was credited in this block: in each pass a place's likeliest token gets a power of its probability, and all credits
// fade. Then it is the threshold.
type credit struct {
	stateless
	p, alpha, beta, gamma float64
	credits               []map[token.ID]float64 // by place of the block
	fused                 map[int]float64        // of this pass
}

// Begin implements [Policy].
func (p *credit) Begin(v *View) { p.credits = make([]map[token.ID]float64, v.End-v.First) }

// Choose implements [Policy].
func (p *credit) Choose(d *Decision, v *View) {
	p.fused = map[int]float64{}
	most := 0.0
	for _, at := range v.Masked {
		c := &v.Proposals[at]
		p.fused[at] = p.fuse(v.First, at, c)
		most = max(most, p.fused[at])
	}
	fixAll(d, v, func(at int) float64 { return p.fused[at] }, func(at int) bool { return p.fused[at] >= min(p.p, most-1e-5) })
}

// fuse credits the place's token, makes the proposal that of the logits with the credits, and returns its probability.
func (p *credit) fuse(first, at int, c *Proposal) float64 {
	of := p.credits[at-first]
	if of == nil {
		of = map[token.ID]float64{}
		p.credits[at-first] = of
	}
	for id := range of {
		of[id] *= p.beta
	}
	of[c.ID] += kernel.Pow64(c.P, p.gamma)
	// The probabilities of tokens with credits change by factors; the sum of all by what these add.
	sum, bestID, bestP := 1.0, c.ID, 0.0
	for _, id := range sortedIDs(of) {
		was := c.probabilityOf(id)
		is := was * kernel.Pow64(1+of[id], p.alpha)
		sum += is - was
		if is > bestP {
			bestID, bestP = id, is
		}
	}
	c.ID, c.P = bestID, bestP/sum
	return c.P
}

// sortedIDs returns the tokens of a map in rising order: sums must not depend on the order of a map.
func sortedIDs(of map[token.ID]float64) (ids []token.ID) {
	for id := range of {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// probabilityOf returns the probability of a token, of a proposal whose token's probability is known.
func (p *Proposal) probabilityOf(id token.ID) float64 {
	if id == p.ID || int(id) >= len(p.Logits) || int(p.ID) >= len(p.Logits) {
		return p.P
	}
	return p.P * kernel.Exp64(max(-700, min(700, float64(p.Logits[id])-float64(p.Logits[p.ID]))))
}

// coherent fixes the surest places, all of those whose token is that of the pass before and that were among the surest then. At first, and where fewer places are so than
// are due, it fixes what is due.
type coherent struct {
	stateless
	warm  int
	ratio float64
	fixed int // places that are looked at; 0: more and more
	wide  int // of this pass
	kept  []int
	ids   map[int]token.ID // of the pass before
	due   int
}

// Begin implements [Policy].
func (p *coherent) Begin(v *View) {
	p.wide, p.kept, p.ids = 1, nil, map[int]token.ID{}
	p.due = max(1, (v.End-v.First)/v.Passes)
}

// Choose implements [Policy].
func (p *coherent) Choose(d *Decision, v *View) {
	entropy := scoreOf("entropy", v)
	if v.Pass >= p.warm {
		if len(v.Masked)*10 <= v.End-v.First {
			p.wide = 1
		}
		p.wide = min(p.wide+1, p.due+int(p.ratio*float64(p.due)))
	}
	if p.fixed > 0 {
		p.wide = p.fixed
	}
	usual, look := best(v, p.due, entropy), best(v, max(p.due, p.wide), entropy)
	var same []int
	for _, at := range look {
		if id, seen := p.ids[at]; seen && id == v.Proposals[at].ID && slices.Contains(p.kept, at) {
			same = append(same, at)
		}
	}
	known := slices.ContainsFunc(usual, func(at int) bool { return slices.Contains(p.kept, at) })
	if d.Fix = append(d.Fix, usual...); v.Pass >= p.warm && known && len(same) >= p.due {
		d.Fix = append(d.Fix[:0], same...)
	}
	p.kept = p.kept[:0]
	for _, at := range best(v, len(v.Masked), entropy) {
		if len(p.kept) < max(p.due, p.wide) && !slices.Contains(d.Fix, at) {
			p.kept = append(p.kept, at)
		}
	}
	clear(p.ids)
	for _, at := range v.Masked {
		p.ids[at] = v.Proposals[at].ID
	}
}
