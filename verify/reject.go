package verify

import (
	"fmt"
	"math/bits"
	"slices"
)

// Reject tests the drafts behind each node in the order in which they were drawn, without replacement. After each
// rejection it goes on with the residual of the target's distribution. It takes trees; of a tree whose drafts are not
// draws it does what [Match] does.
var Reject = register(Rule{
	Name: "reject", Paper: "Recursive rejection sampling: Recursive Speculative Decoding (Jeon et al.), section 3, 2024",
	Grade: SameDistribution, Needs: Needs{Distributions: true},
	New: func() Acceptor { return new(reject) },
})

type reject struct {
	match    match
	children []int
	q        []float64
}

// Accept implements [Acceptor].
func (r *reject) Accept(v View, out *Outcome) error {
	return descend(v, out, &r.match, r.test)
}

// test returns the accepted child of a node, or Root. p is the target's distribution there; where no child is accepted
// it becomes the distribution of the token to draw instead.
func (r *reject) test(v View, node int, p []float64) (child int, err error) {
	q := v.Drafts(node)
	r.q = widen(r.q, q.P)
	r.children = v.Children(r.children[:0], node)
	for k, c := range r.children {
		samples, id := v.Samples(c), v.Token(c)
		if bits.OnesCount64(samples) > 1 {
			return Root, fmt.Errorf("verify: reject: draft %d: it stands for %d draws; draw without replacement, or use kseq",
				c, bits.OnesCount64(samples))
		}
		at := slices.Index(q.IDs, id)
		if at < 0 || samples != 1<<k {
			return Root, nil // it is not the k-th draw from q
		}
		if v.Number(node, UseTest+NodeUses*Use(k))*r.q[at] < p[id] {
			return c, nil
		}
		if !subtract(p, q.IDs, r.q, 1) && p[id] > 0 {
			return c, nil // p and q are equal but for rounding
		}
		r.q[at] = 0
		if !normalise(r.q) {
			return Root, nil // all tokens of q were tested
		}
	}
	return Root, nil
}
