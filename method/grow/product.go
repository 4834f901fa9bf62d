package grow

import (
	"slices"

	"grove/internal/sample"
	"grove/method"
)

// Product turns one list of candidates a depth, such as heads give, into a tree: a path's probability is the product
// of its tokens'. The zero value is ready; it is for one goroutine.
type Product struct {
	// Share, if it is not nil, returns the share of candidates of a rank and a probability that are accepted, which stands for the probability: that of
	// candidates that come in the order of a draw does not say how often they are drawn.
	Share func(t *method.Tree, rank int, p float32) float32

	open []step // sorted by p, rising
}

// step is a draft that may be added next.
type step struct {
	parent, depth, rank int
	above, p            float32 // of the path to its parent, and to it
}

// Grow adds the most probable paths, at most most drafts. lists[i] holds the candidates at depth i+1, with falling
// probabilities.
func (g *Product) Grow(t *method.Tree, lists [][]sample.Candidate, most int) {
	g.open = g.open[:0]
	g.offer(t, lists, step{parent: method.Root, above: 1})
	for added := 0; len(g.open) > 0 && added < most; {
		s := g.open[len(g.open)-1]
		g.open = g.open[:len(g.open)-1]
		c := lists[s.depth][s.rank]
		at := t.Add(s.parent, c.ID, Class(s.rank, c.P), Belief(s.rank, c.P))
		if at != method.Root {
			added++
			g.offer(t, lists, step{parent: at, depth: s.depth + 1, above: s.p})
		}
		g.offer(t, lists, step{parent: s.parent, depth: s.depth, rank: s.rank + 1, above: s.above})
	}
}

// offer opens a step, if the lists have it.
func (g *Product) offer(t *method.Tree, lists [][]sample.Candidate, s step) {
	if s.depth >= len(lists) || s.rank >= len(lists[s.depth]) {
		return
	}
	p := lists[s.depth][s.rank].P
	if g.Share != nil {
		p = g.Share(t, s.rank, p)
	}
	s.p = s.above * p
	at, _ := slices.BinarySearchFunc(g.open, s.p, func(o step, p float32) int {
		if o.p < p {
			return -1
		}
		return 1 // equal ones: the earlier goes first
	})
	g.open = slices.Insert(g.open, at, s)
}
