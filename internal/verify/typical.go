package verify

import (
	"math"
	"slices"
)

// Typical accepts the longest path of drafts that are likely enough by the target, and of equally long paths the
// likeliest. The token that follows is drawn from the target's likely tokens. It is lossy above temperature 0.
var Typical = register(Rule{
	Name: "typical", Paper: "Typical acceptance: Medusa (Cai et al.), section 2.3.1, 2024", Grade: Lossy,
	New: func() Acceptor { return &typical{least: usual} },
})

// typicality sets the probability that a token must exceed: the lesser of floor, and share times the exponential of
// minus the entropy.
type typicality struct{ floor, share float64 }

// usual has the values of Medusa's generate call.
var usual = typicality{floor: 0.09, share: 0.3}

// threshold returns the probability that a token must exceed under p.
func (t typicality) threshold(p []float64) float64 {
	entropy := 0.0
	for _, v := range p {
		entropy -= v * math.Log(v+1e-5)
	}
	return min(t.floor, t.share*math.Exp(-entropy))
}

// truncate removes the tokens below the threshold from p.
func (t typicality) truncate(p []float64) {
	least := t.threshold(p)
	for i, v := range p {
		if v < least {
			p[i] = 0
		}
	}
	normalise(p)
}

type typical struct {
	least    typicality
	likely   []likely // the root, and the drafts that a path of likely tokens reaches; parents first
	children []int
	path     []int
	p        []float64 // behind the end of the best path
}

// likely is a node that can be accepted.
type likely struct {
	node, parent int // parent: its place among the likely ones
	depth        int
	sum          float64 // of the log-probabilities on its path
}

// better reports whether to accept a rather than b.
func (a likely) better(b likely) bool {
	return a.depth > b.depth || a.depth == b.depth && a.sum > b.sum
}

// Accept implements [Acceptor].
func (t *typical) Accept(v View, out *Outcome) error {
	out.reset()
	t.likely = append(t.likely[:0], likely{node: Root})
	best := 0
	var fault error // of the row behind the best node
	for i := 0; i < len(t.likely); i++ {
		at := t.likely[i]
		p, err := v.Probs(at.node)
		if i == best {
			fault, t.p = err, append(t.p[:0], p...) // a later node may be better
		}
		if err != nil {
			continue
		}
		least := t.least.threshold(p)
		t.children = v.Children(t.children[:0], at.node)
		for _, c := range t.children {
			w := p[v.Token(c)]
			if w <= least || !v.Ran(c) {
				continue
			}
			t.likely = append(t.likely, likely{node: c, parent: i, depth: at.depth + 1, sum: at.sum + math.Log(w)})
			if last := len(t.likely) - 1; t.likely[last].better(t.likely[best]) {
				best = last
			}
		}
	}
	t.path = t.path[:0]
	for ; best != 0; best = t.likely[best].parent {
		t.path = append(t.path, t.likely[best].node)
	}
	slices.Reverse(t.path)
	t.least.truncate(t.p)
	return out.conclude(v, t.path, t.p, fault)
}
