package verify

import (
	"math"

	"grove/internal/text/token"
)

// KSEQ tests the independent draws behind each node one after the other, all against the same bound, and goes on with
// the draws behind the accepted one. It takes trees of chains that share their beginnings. Of a tree whose drafts are
// not draws it does what [Match] does.
var KSEQ = register(Rule{
	Name: "kseq", Paper: "SpecTr: Fast Speculative Decoding via Optimal Transport (Sun et al.), 2023",
	Grade: SameDistribution, Needs: Properties{Distributions: true, WithReplacement: true},
	New: func() Acceptor {
		return &descent{draws: draws{rule: "kseq", replacement: true}, test: (*descent).bounded}
	},
})

// bounded tests draws in their order, equal ones one by one: another order would change the distribution of the text.
func (d *descent) bounded(v View, node, n int, p []float64, q Distribution) (child int, err error) {
	rho, beta := bound(p, q.IDs, d.q, n)
	for k := range n {
		c := nth(v, d.children, k)
		at, err := d.place(v, c, q)
		if at < 0 {
			return Root, err
		}
		if v.Number(node, PurposeTest+NodePurposes*Purpose(k))*rho*d.q[at] < p[v.Token(c)] {
			return c, nil
		}
	}
	// Each test accepts token x with probability min(q, p/rho); the factor is how many tests are reached on average.
	if factor := -math.Expm1(float64(n)*math.Log1p(-beta)) / beta; beta > 0 {
		for i, id := range q.IDs {
			d.q[i] = min(d.q[i], p[id]/rho) * factor
		}
		subtract(p, q.IDs, d.q, 1) // where nothing remains, only rounding rejected the draws: p is right
	}
	return Root, nil
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
