package diffuse

import (
	"slices"

	"grove/internal/kernel"
	"grove/internal/options"
	"grove/internal/text/token"
)

func init() {
	Register(Info{
		Name: "factor", Paper: "Fast-dLLM, Wu et al. 2025: the most places n of which the least sure is above 1 - f/(n+1)", Options: "f=1",
		Open: func(o *options.Options) Policy { return factor{f: o.Float("f", 1, 0, 1e6)} },
	})
	Register(Info{
		Name: "ete", Paper: "From Bits to Rounds, 2025: factor over all blocks, and where few places are sure, the likeliest tokens of an unsure one are tried beside each other",
		Options: "f=1, branches=3, least=2, near=8",
		Open: func(o *options.Options) Policy {
			return &ete{factor: factor{f: o.Float("f", 1, 0, 1e6)}, branches: o.Int("branches", 3, 1, 16), least: o.Int("least", 2, 0, 1024), near: o.Int("near", 8, 1, MostLength)}
		},
	})
}

// factor fixes as many of the surest places as go together: n of which the least sure has (n+1)(1-P) < f, one at least.
type factor struct {
	stateless
	f float64
}

// sure returns these places; there may be none.
func (p factor) sure(v *View) []int {
	ranked := best(v, len(v.Masked), v.confidence)
	n := len(ranked)
	for n > 0 && !(float64(n+1)*(1-v.Proposals[ranked[n-1]].P) < p.f) {
		n--
	}
	return ranked[:n]
}

// Choose implements [Policy].
func (p factor) Choose(d *Decision, v *View) {
	if d.Fix = append(d.Fix, p.sure(v)...); len(d.Fix) == 0 {
		d.Fix = append(d.Fix, best(v, 1, v.confidence)...)
	}
}

// nats implements [bounded]: the places that a pass fixes have at most f nats together, but for the one that it fixes in any case.
func (p factor) nats() float64 {
	if p.f > 1 {
		return 0
	}
	return p.f
}

// ete fixes by the factor over all of the canvas. Where it fixes few places, the place of the highest entropy among the first masks is tried with its likeliest tokens, and the
// branch goes on that has the most sure places by the probability of its token.
type ete struct {
	factor
	branches, least, near int
}

// Choose implements [Policy].
func (p *ete) Choose(d *Decision, v *View) {
	few := len(p.sure(v)) < p.least
	p.factor.Choose(d, v)
	left := slices.DeleteFunc(slices.Clone(v.Masked), func(at int) bool { return slices.Contains(d.Fix, at) })
	if n := min(p.branches, v.Branches); few && n > 1 && len(left) > 1 {
		near := left[:min(p.near, len(left))]
		rank(near, func(at int) float64 { return v.Proposals[at].Entropy })
		d.Try = v.likeliest(near[0], n)
	}
}

// Judge implements [explorer].
func (p *ete) Judge(tried []Trial, branches []View) (best int) {
	most := -1.0
	for i := range branches {
		if score := tried[i].P * float64(1+len(p.sure(&branches[i]))); score > most {
			most, best = score, i
		}
	}
	return best
}

// Trial is a token that is tried at a place of the canvas.
type Trial struct {
	At int
	ID token.ID
	P  float64 // its probability at temperature 1
}

// explorer is a policy whose decisions may have trials. It sees all of the canvas as one block.
type explorer interface {
	// Judge returns the trial to go on with, by what a pass gave of a branch of each.
	Judge(tried []Trial, branches []View) int
}

// bounded is a policy whose rule bounds the information that a pass fixes.
type bounded interface {
	// nats returns the most that the tokens of a pass have together; 0: there is no bound.
	nats() float64
}

// farthest is how far below the largest logit that of a token is that may be tried: one of a millionth of the likeliest one's probability.
const farthest = 14

// likeliest returns the n likeliest tokens of a mask, fewer where the others are far less likely.
func (v *View) likeliest(at, n int) (all []Trial) {
	p, top := &v.Proposals[at], 0.0
	for range n {
		next := -1
		for id, l := range p.Logits {
			if (next < 0 || l > p.Logits[next]) && !slices.ContainsFunc(all, func(t Trial) bool { return int(t.ID) == id }) {
				next = id
			}
		}
		if next < 0 || len(all) > 0 && float64(p.Logits[next]) < top-farthest {
			break
		}
		if len(all) == 0 {
			top = float64(p.Logits[next])
		}
		all = append(all, Trial{At: at, ID: token.ID(next), P: p.Top * kernel.Exp64(float64(p.Logits[next])-top)})
	}
	return all
}

// explorable returns an error where settings leave no room for branches.
func (s *Settings) explorable(c cache) error {
	switch {
	case c.reach() != runsAll:
		return s.fault("cache", "the policy %s reads all of the canvas, which the cache %s does not run; choose none or prefix", s.Policy, s.Cache)
	case s.Blocks != "" || s.Early != "":
		return s.fault("policy", "the policy %s with adaptive blocks or an early end; choose one of them", s.Policy)
	}
	return nil
}
