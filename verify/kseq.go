package verify

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"grove/text/token"
)

// KSEQ tests the independent draws behind each node one after the other, all against the same bound, and goes on with
// the draws behind the accepted one. It takes trees of chains that share their beginnings. Of a tree whose drafts are
// not draws it does what [Match] does.
var KSEQ = register(Rule{
	Name: "kseq", Paper: "SpecTr: Fast Speculative Decoding via Optimal Transport (Sun et al.), 2023",
	Grade: SameDistribution, Needs: Needs{Distributions: true, Samples: true},
	New: func() Acceptor { return new(kseq) },
})

type kseq struct {
	match    match
	children []int
	q        []float64
}

// Accept implements [Acceptor].
func (r *kseq) Accept(v View, out *Outcome) error {
	return descend(v, out, &r.match, r.test)
}

// test returns the accepted child of a node, or Root. p is the target's distribution there; where no draw is accepted
// it becomes the distribution of the token to draw instead. Draws are tested in their order, equal ones one by one:
// another order would change the distribution of the text.
func (r *kseq) test(v View, node int, p []float64) (child int, err error) {
	q := v.Drafts(node)
	if len(q.IDs) == 0 {
		return Root, nil
	}
	r.q = widen(r.q, q.P)
	r.children = v.Children(r.children[:0], node)
	draws, err := count("kseq", v, node, r.children)
	if err != nil || draws == 0 {
		return Root, err
	}
	rho, beta := bound(p, q.IDs, r.q, draws)
	for k := range draws {
		c := nth(v, r.children, k)
		at, id := slices.Index(q.IDs, v.Token(c)), v.Token(c)
		if at < 0 {
			return Root, fmt.Errorf("verify: kseq: draft %d: token %d has probability 0 in what it was drawn from", c, id)
		}
		if v.Number(node, UseTest+NodeUses*Use(k))*rho*r.q[at] < p[id] {
			return c, nil
		}
	}
	// Each test accepts token x with probability min(q, p/rho); the factor is how many tests are reached on average.
	if factor := -math.Expm1(float64(draws)*math.Log1p(-beta)) / beta; beta > 0 {
		for i, id := range q.IDs {
			r.q[i] = min(r.q[i], p[id]/rho) * factor
		}
		subtract(p, q.IDs, r.q, 1) // where nothing remains, only rounding rejected the draws: p is right
	}
	return Root, nil
}

// nth returns the draft of a node's children that stands for the k-th draw, which there is.
func nth(v View, children []int, k int) int {
	for _, c := range children {
		if v.Samples(c)>>k&1 == 1 {
			return c
		}
	}
	return Root
}

// count returns how many draws the children of a node stand for; each must stand for some that no other does.
func count(rule string, v View, node int, children []int) (int, error) {
	all := uint64(0)
	for _, c := range children {
		samples := v.Samples(c)
		if samples == 0 || samples&all != 0 {
			return 0, fmt.Errorf("verify: %s: draft %d: it stands for the draws %b; it must stand for 1 or more that no sibling has", rule, c, samples)
		}
		all |= samples
	}
	if all&(all+1) != 0 {
		return 0, fmt.Errorf("verify: %s: node %d: its drafts stand for the draws %b; none may be missing", rule, node, all)
	}
	return bits.Len64(all), nil
}

// bound returns the least rho by which as many draws from q as there are can be tested, from above, and the
// probability beta that one of them passes.
func bound(p []float64, ids []token.ID, q []float64, draws int) (rho, beta float64) {
	pass := func(rho float64) (beta float64) {
		for i, id := range ids {
			beta += min(q[i], p[id]/rho)
		}
		return min(1, beta)
	}
	low, high := 1.0, float64(draws)
	for range 48 {
		if high-low < 1e-12 {
			break
		}
		rho = (low + high) / 2
		if beta = pass(rho); -math.Expm1(float64(draws)*math.Log1p(-beta)) > rho*beta {
			low = rho // too much of what is accepted would exceed p
		} else {
			high = rho
		}
	}
	return high, pass(high)
}
