package verify

import (
	"fmt"
	"slices"
)

// SpecInfer tests the independent draws behind each node one after the other, and goes on with the residual of the
// target's distribution after each rejection. It takes the trees of [KSEQ]. Of a tree whose drafts are not draws it does
// what [Match] does.
var SpecInfer = register(Rule{
	Name: "specinfer", Paper: "Multi-step speculative sampling: SpecInfer (Miao et al.), algorithm 2, 2023",
	Grade: SameDistribution, Needs: Needs{Distributions: true, Samples: true},
	New: func() Acceptor { return new(specInfer) },
})

type specInfer struct {
	match    match
	children []int
	q        []float64
}

// Accept implements [Acceptor].
func (r *specInfer) Accept(v View, out *Outcome) error {
	return descend(v, out, &r.match, r.test)
}

// test returns the accepted child of a node, or Root. p is the target's distribution there; where no draw is accepted it
// becomes the distribution of the token to draw instead. The residual has no mass on a token that was rejected, so that
// no later draw of it is accepted.
func (r *specInfer) test(v View, node int, p []float64) (child int, err error) {
	q := v.Drafts(node)
	if len(q.IDs) == 0 {
		return Root, nil
	}
	r.q = widen(r.q, q.P)
	r.children = v.Children(r.children[:0], node)
	draws, err := count("specinfer", v, node, r.children)
	if err != nil {
		return Root, err
	}
	for k := range draws {
		c := nth(v, r.children, k)
		id := v.Token(c)
		at := slices.Index(q.IDs, id)
		if at < 0 {
			return Root, fmt.Errorf("verify: specinfer: draft %d: token %d has probability 0 in what it was drawn from", c, id)
		}
		if v.Number(node, UseTest+NodeUses*Use(k))*r.q[at] < p[id] {
			return c, nil
		}
		if !subtract(p, q.IDs, r.q, 1) && p[id] > 0 {
			return c, nil // p and q are equal but for rounding
		}
	}
	return Root, nil
}
