// route.go chooses the experts of a mixture for each row, and weighs them.

package compute

import (
	"math"

	"grove/internal/compute/weight"
	"grove/internal/kernel"
)

// Router describes how rows choose and weigh experts. Fields other than ExpertsPerToken may be zero. It is read-only and safe for concurrent use.
type Router struct {
	ExpertsPerToken    int           // experts of a row
	Sigmoid            bool          // an expert's affinity is the sigmoid of its logit; otherwise the softmax among all
	Norm               bool          // weights are shares among the chosen; otherwise affinities
	Scale              float32       // multiplies the weights; 0: 1
	Bias               weight.Vector // one value for each expert, joins its affinity for the choice only
	Weights            weight.Vector // one value for each expert, multiplies its weight at last
	Groups, GroupsUsed int           // only experts of the GroupsUsed best of so many equal groups are chosen; 0: all
	Near               float32       // SparseMixer's bound on the distance of experts that share a weight; 0: weights are as above
}

// Scratch is the numbers by which the experts, and the groups, of one row are chosen. The zero value is ready.
type Scratch struct{ order, scores []float32 }

func routeGrow(s []float32, n int) []float32 {
	if cap(s) < n {
		s = make([]float32, n)
	}
	return s[:n]
}

// Choose writes the experts of a row by rank, ties to the lowest number, and their weights, c.ExpertsPerToken of each, from one logit for each expert. It
// always finds enough, as a NaN is never larger.
func (c *Router) Choose(s *Scratch, chosen []int32, weights, logits []float32) {
	s.order = routeGrow(s.order, len(logits))
	order := s.order
	c.rank(order, logits)
	if c.Groups > 1 {
		s.closeGroups(c, order)
	}
	for rank := range chosen {
		best := int32(-1)
		for e := range order {
			if (best < 0 || order[e] > order[best]) && !contains(chosen[:rank], int32(e)) {
				best = int32(e)
			}
		}
		chosen[rank] = best
	}
	if c.Near > 0 {
		c.weighNear(weights, chosen, logits)
	} else {
		c.weigh(weights, chosen, logits)
	}
}

// rank writes the numbers by which experts are chosen: affinities with their bias. A softmax without bias keeps the
// order of its logits, which are written then.
func (c *Router) rank(order, logits []float32) {
	switch {
	case c.Sigmoid:
		for e, l := range logits {
			order[e] = sigmoid(l)
		}
	case c.Bias.F != nil:
		high := largest(logits)
		sum := sumExp(logits, high)
		for e, l := range logits {
			order[e] = kernel.Exp32(l-high) / sum
		}
	default:
		copy(order, logits)
	}
	if c.Bias.F != nil {
		kernel.Add(order, c.Bias.F)
	}
}

// weigh writes the weights of the chosen experts, by rank.
func (c *Router) weigh(weights []float32, chosen []int32, logits []float32) {
	sum := float32(1)
	if c.Sigmoid {
		for rank, e := range chosen {
			weights[rank] = sigmoid(logits[e])
		}
		if c.Norm {
			sum = sumOf(weights) + leastSum
		}
	} else {
		high := logits[chosen[0]]
		for _, e := range chosen {
			high = max(high, logits[e])
		}
		if !c.Norm {
			high = largest(logits)
			sum = sumExp(logits, high)
		}
		for rank, e := range chosen {
			weights[rank] = kernel.Exp32(logits[e] - high)
		}
		if c.Norm {
			sum = sumOf(weights)
		}
	}
	for rank := range weights {
		weights[rank] /= sum
		if c.Scale != 0 {
			weights[rank] *= c.Scale
		}
		if c.Weights.F != nil {
			weights[rank] *= c.Weights.F[chosen[rank]]
		}
	}
}

// weighNear writes the weights of SparseMixer without its training (Liu et al. 2024, GRIN, arXiv 2409.12136, section 2.3; modeling_phimoe.py): that
// of an expert is its share among the experts that no earlier rank has and whose logits are near its own, by a part of the
// larger of the two.
func (c *Router) weighNear(weights []float32, chosen []int32, logits []float32) {
	for rank, best := range chosen {
		high, sum := logits[best], float32(0)
		for e, l := range logits {
			far := (high-l)/max(float32(math.Abs(float64(l))), high) > c.Near
			if !far && !contains(chosen[:rank], int32(e)) {
				sum += kernel.Exp32(l - high)
			}
		}
		weights[rank] = 1 / sum
	}
}

// leastSum keeps a share of sigmoids that are all 0 finite, as DeepSeek-V3 does.
const leastSum = 1e-20

// closeGroups excludes the experts outside the best groups. A group counts by its best expert (DeepSeek-V2, section
// 2.2.2), with sigmoids by the sum of its two best (DeepSeek-V3, section 2.1.2).
func (s *Scratch) closeGroups(c *Router, order []float32) {
	n := len(order) / c.Groups
	s.scores = routeGrow(s.scores, c.Groups)
	for g := range s.scores {
		first, second := routeMinusInf, routeMinusInf
		for _, v := range order[g*n : (g+1)*n] {
			switch {
			case v > first:
				first, second = v, first
			case v > second:
				second = v
			}
		}
		if s.scores[g] = first; c.Sigmoid && n > 1 {
			s.scores[g] += second
		}
	}
	for g, v := range s.scores {
		better := 0
		for o, w := range s.scores {
			if w > v || w == v && o < g {
				better++
			}
		}
		if better < c.GroupsUsed {
			continue
		}
		for e := range n {
			order[g*n+e] = routeMinusInf
		}
	}
}

var routeMinusInf = float32(math.Inf(-1))

func contains(s []int32, v int32) bool {
	for _, e := range s {
		if e == v {
			return true
		}
	}
	return false
}

func sigmoid(x float32) float32 { return 1 / (1 + kernel.Exp32(-x)) }

func largest(x []float32) float32 {
	high := x[0]
	for _, v := range x {
		high = max(high, v)
	}
	return high
}

// sumExp returns the sum of exponentials of x less high, in ascending order.
func sumExp(x []float32, high float32) (sum float32) {
	for _, v := range x {
		sum += kernel.Exp32(v - high)
	}
	return sum
}

func sumOf(x []float32) (sum float32) {
	for _, v := range x {
		sum += v
	}
	return sum
}
