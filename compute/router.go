package compute

import "grove/internal/kernel"

// Router describes how rows choose and weigh experts. Fields other than Used may be zero.
type Router struct {
	Used               int     // experts of a row
	Sigmoid            bool    // an expert's affinity is the sigmoid of its logit; otherwise the softmax among all
	Norm               bool    // weights are shares among the chosen; otherwise affinities
	Scale              float32 // multiplies the weights; 0: 1
	Bias               Vector  // one value for each expert, joins its affinity for the choice only
	Weights            Vector  // one value for each expert, multiplies its weight at last
	Groups, GroupsUsed int     // only experts of the GroupsUsed best of so many equal groups are chosen; 0: all
}

// choose chooses the experts of row i, ties to the lowest number, and weighs them. It always finds enough, as a NaN
// is never larger.
func (r *Routing) choose(c *Router, i int, logits []float32) {
	r.order = grow(r.order, len(logits))
	order := r.order
	c.rank(order, logits)
	if c.Groups > 1 {
		r.closeGroups(c, order)
	}
	chosen := r.chosen[i*r.used : (i+1)*r.used]
	for rank := range chosen {
		best := int32(-1)
		for e := range order {
			if (best < 0 || order[e] > order[best]) && !contains(chosen[:rank], int32(e)) {
				best = int32(e)
			}
		}
		chosen[rank] = best
	}
	c.weigh(r.weights[i*r.used:(i+1)*r.used], chosen, logits)
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

// leastSum keeps a share of sigmoids that are all 0 finite, as DeepSeek-V3 does.
const leastSum = 1e-20

// closeGroups excludes the experts outside the best groups. A group counts by its best expert (DeepSeek-V2, section
// 2.2.2), with sigmoids by the sum of its two best (DeepSeek-V3, section 2.1.2).
func (r *Routing) closeGroups(c *Router, order []float32) {
	n := len(order) / c.Groups
	r.scores = grow(r.scores, c.Groups)
	for g := range r.scores {
		first, second := minusInf, minusInf
		for _, v := range order[g*n : (g+1)*n] {
			switch {
			case v > first:
				first, second = v, first
			case v > second:
				second = v
			}
		}
		if r.scores[g] = first; c.Sigmoid && n > 1 {
			r.scores[g] += second
		}
	}
	for g, v := range r.scores {
		better := 0
		for o, w := range r.scores {
			if w > v || w == v && o < g {
				better++
			}
		}
		if better < c.GroupsUsed {
			continue
		}
		for e := range n {
			order[g*n+e] = minusInf
		}
	}
}

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
