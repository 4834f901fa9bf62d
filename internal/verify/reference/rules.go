package reference

import (
	"math"
	"slices"
)

// Rules returns the rules by the names that package verify gives them, with the values that it takes where a user gives none. The judge's
// importance and threshold are the caller's.
func Rules(importance func(text []int) float64, threshold float64) map[string]Rule {
	return map[string]Rule{
		"match": Match, "block": Block, "reject": Reject, "specinfer": SpecInfer, "kseq": KSEQ, "traversal": Traversal, "traversal-iid": TraversalIID,
		"typical": Typical, "threshold": Threshold(5, 3), "judge": Judge(importance, threshold),
	}
}

// Match draws from the target and follows the drafts that equal the draws: the text of plain decoding, of any tree.
func Match(root *Node, d Dice) (accepted []*Node, next int) { return follow(root, d, nil) }

// follow is Match that, where no draft equals the draw, accepts the one that other returns, if any.
func follow(n *Node, d Dice, other func(n *Node) *Node) (accepted []*Node, next int) {
	for {
		id := d.Draw(n.Text, n.P)
		var child *Node
		if at := slices.IndexFunc(n.Next, func(c *Node) bool { return c.Token == id }); at >= 0 {
			child = n.Next[at]
		} else if other != nil {
			child = other(n)
		}
		if child == nil {
			return accepted, id
		}
		n, accepted = child, append(accepted, child)
	}
}

// ofDraws is a rule for trees of draws, which does what Match does where drafts are no draws.
func ofDraws(rule Rule) Rule {
	return func(root *Node, d Dice) ([]*Node, int) {
		if root.Q == nil {
			return Match(root, d)
		}
		return rule(root, d)
	}
}

// descend goes down from the root: test returns the draft that is accepted behind a node, or nil and the distribution of the token to
// draw instead.
func descend(test func(n *Node, d Dice) (child *Node, instead []float64)) Rule {
	return ofDraws(func(n *Node, d Dice) (accepted []*Node, next int) {
		for {
			child, p := test(n, d)
			if child == nil {
				return accepted, d.Pick(p, len(n.Text))
			}
			n, accepted = child, append(accepted, child)
		}
	})
}

// Reject is recursive rejection sampling over draws without replacement (Jeon et al. 2024; of one draw, Leviathan et al. 2023).
var Reject = descend(func(n *Node, d Dice) (*Node, []float64) { return recursive(n, d, false) })

// SpecInfer is the same over independent draws (multi-step speculative sampling, Miao et al. 2023).
var SpecInfer = descend(func(n *Node, d Dice) (*Node, []float64) { return recursive(n, d, true) })

// recursive tests the draws one after the other, each against what the rejections before it left of p.
func recursive(n *Node, d Dice, independent bool) (*Node, []float64) {
	p, q := n.P, n.Q
	for k, c := range n.Next {
		x := c.Token
		if d.Pass(p[x]/q[x], len(n.Text), k) {
			return c, nil
		}
		p = residual(p, q, 1)
		if !independent {
			q = without(q, x)
		}
	}
	return nil, p
}

// KSEQ tests k independent draws against q times the least rho for which what is accepted stays below p (SpecTr, Sun et al. 2023).
var KSEQ = descend(func(n *Node, d Dice) (*Node, []float64) {
	p, q, k := n.P, n.Q, float64(len(n.Next))
	if k == 0 {
		return nil, p
	}
	beta := func(rho float64) (sum float64) { // the probability that a draw passes
		for x := range p {
			sum += math.Min(q[x], p[x]/rho)
		}
		return math.Min(1, sum)
	}
	some := func(beta float64) float64 { return 1 - math.Pow(1-beta, k) } // that one of k passes
	low, rho := 1.0, k
	for rho-low > 1e-13 {
		if r := (low + rho) / 2; some(beta(r)) > r*beta(r) {
			low = r
		} else {
			rho = r
		}
	}
	for i, c := range n.Next {
		if d.Pass(p[c.Token]/(rho*q[c.Token]), len(n.Text), i) {
			return c, nil
		}
	}
	if b := beta(rho); b > 0 {
		accepted := make([]float64, len(p))
		for x := range p {
			accepted[x] = math.Min(q[x], p[x]/rho) * some(b) / b
		}
		p = residual(p, accepted, 1)
	}
	return nil, p
})

// Block tests each prefix of a chain of draws and accepts the longest one that passes (block verification, Sun et al. 2024, algorithm 2).
var Block = ofDraws(func(root *Node, d Dice) (accepted []*Node, next int) {
	w, n, best, p, path := 1.0, root, 0, root.P, []*Node{}
	for i := 0; ; i++ {
		h, instead := w, n.P
		if len(n.Next) > 0 {
			instead = residual(n.P, n.Q, w)
			h = 1.0
			if left := excess(n.P, n.Q, w); w < 1 || left > 0 {
				h = left / (left + 1 - w)
			}
		}
		if i == 0 || d.Pass(h, len(root.Text), i-1) {
			best, p = i, instead
		}
		if len(n.Next) == 0 {
			break
		}
		x := n.Next[0].Token
		if w = math.Min(1, w*n.P[x]/n.Q[x]); w == 0 {
			break
		}
		n = n.Next[0]
		path = append(path, n)
	}
	return path[:best], d.Pick(p, len(root.Text)+best)
})

// Traversal tests the paths of a tree from their leaves to the root (Weng et al. 2025, algorithm 1), of draws without replacement.
var Traversal = ofDraws(func(root *Node, d Dice) ([]*Node, int) { return traverse(root, d, false) })

// TraversalIID is Traversal of independent draws.
var TraversalIID = ofDraws(func(root *Node, d Dice) ([]*Node, int) { return traverse(root, d, true) })

func traverse(root *Node, d Dice, independent bool) (accepted []*Node, next int) {
	tests := 0
	var try func(n *Node, w float64) bool // w: the probability that is left of accepting n
	try = func(n *Node, w float64) bool {
		p, q := n.P, n.Q
		for _, c := range n.Next {
			x := c.Token
			accepted = append(accepted, c)
			if r := math.Min(1, w*p[x]/q[x]); r > 0 && try(c, r) {
				return true
			}
			accepted = accepted[:len(accepted)-1]
			left := excess(p, q, w)
			p = residual(p, q, w)
			if w < 1 {
				w = left / (left + 1 - w)
			}
			if !independent {
				q = without(q, x)
			}
		}
		if w < 1 {
			if tests++; !d.Pass(w, len(root.Text), tests-1) {
				return false
			}
		}
		next = d.Pick(p, len(n.Text))
		return true
	}
	try(root, 1)
	return accepted, next
}

// Typical accepts the longest path of drafts that are likely enough, of equally long ones the likeliest (Medusa, Cai et al. 2024).
func Typical(root *Node, d Dice) (accepted []*Node, next int) {
	least := func(p []float64) float64 {
		entropy := 0.0
		for _, v := range p {
			entropy -= v * math.Log(v+1e-5)
		}
		return math.Min(0.09, 0.3*math.Exp(-entropy))
	}
	end, most := root, 0.0
	var walk func(n *Node, path []*Node, sum float64)
	walk = func(n *Node, path []*Node, sum float64) {
		if len(path) > len(accepted) || len(path) == len(accepted) && sum > most {
			accepted, end, most = path, n, sum
		}
		for _, c := range n.Next {
			if p := n.P[c.Token]; p > least(n.P) {
				walk(c, append(slices.Clip(path), c), sum+math.Log(p))
			}
		}
	}
	walk(root, nil, 0)
	likely := slices.Clone(end.P)
	for x, p := range likely {
		if p < least(end.P) {
			likely[x] = 0
		}
	}
	return accepted, d.Pick(normalised(likely), len(end.Text))
}

// Threshold is Match that also accepts the likeliest draft among the beta likeliest tokens whose probability is at least exp(-tau) of the
// largest: at temperature 1, the published bound on logits (GAD++, Xia et al. 2022).
func Threshold(beta int, tau float64) Rule {
	return func(root *Node, d Dice) ([]*Node, int) {
		return follow(root, d, func(n *Node) *Node {
			p := n.P
			above := func(x, y int) bool { return p[x] > p[y] || p[x] == p[y] && x < y }
			var best *Node
			for _, c := range n.Next {
				if best == nil || above(c.Token, best.Token) {
					best = c
				}
			}
			if best == nil || math.Log(slices.Max(p)/p[best.Token]) > tau {
				return nil
			}
			rank := 0
			for x := range p {
				if above(x, best.Token) {
					rank++
				}
			}
			if rank >= beta {
				return nil
			}
			return best
		})
	}
}

// Judge is Match that also accepts the least important draft, if its importance is below a threshold (Bachmann et al. 2025).
func Judge(importance func(text []int) float64, threshold float64) Rule {
	return func(root *Node, d Dice) ([]*Node, int) {
		return follow(root, d, func(n *Node) (best *Node) {
			least := threshold
			for _, c := range n.Next {
				if x := importance(c.Text); x < least {
					best, least = c, x
				}
			}
			return best
		})
	}
}

// excess returns the sum of max(0, w*p - q), without what rounding leaves.
func excess(p, q []float64, w float64) (left float64) {
	for x := range p {
		left += math.Max(0, w*p[x]-q[x])
	}
	if left < 1e-12 {
		return 0
	}
	return left
}

// residual returns max(0, w*p - q), normalised; p where nothing is left.
func residual(p, q []float64, w float64) []float64 {
	if excess(p, q, w) == 0 {
		return p
	}
	left := make([]float64, len(p))
	for x := range p {
		left[x] = math.Max(0, w*p[x]-q[x])
	}
	return normalised(left)
}

// without returns q without a token, normalised.
func without(q []float64, x int) []float64 {
	left := slices.Clone(q)
	left[x] = 0
	return normalised(left)
}

func normalised(p []float64) []float64 {
	all, out := sum(p), slices.Clone(p)
	for x := range out {
		if all > 0 {
			out[x] /= all
		}
	}
	return out
}

func sum(p []float64) (all float64) {
	for _, v := range p {
		all += v
	}
	return all
}
