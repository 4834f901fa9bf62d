package programs

import (
	"cmp"
	"math"
	"slices"
)

// What a token is drawn by.
const (
	ofSafe  = iota // the safe model's distribution
	ofBoth         // one between the two
	ofRisky        // the other model's
)

// budget is what an answer may diverge from the safe model, in nats, and has.
type budget struct {
	perToken, debt float64
	spent          float64
	tokens         [3]int // by what they are drawn by
}

// accrued returns the budget of the tokens so far.
func (b *budget) accrued() float64 {
	return float64(b.tokens[ofSafe]+b.tokens[ofBoth]+b.tokens[ofRisky])*b.perToken - b.debt
}

// spend decides what the next token is drawn by, and pays for it; a distribution between the two is written to fused. What was spent never exceeds
// max(0, accrued), as float64 has them.
func (b *budget) spend(fused *[]float64, safe, risky []float64) (by int) {
	b.tokens[ofSafe]++ // as long as it is not known to be another
	most := b.accrued()
	if most <= b.spent {
		return ofSafe
	}
	if kl := anchoredDivergence(risky, safe); b.spent+kl <= most {
		return b.pay(ofRisky, kl)
	}
	f := newFusion(safe, risky)
	theta := f.solve(most - b.spent)
	for range 8 { // by rounding the sum may be above the bound by a little
		*fused = f.mix(*fused, safe, theta)
		if kl := anchoredDivergence(*fused, safe); theta > 0 && b.spent+kl <= most {
			return b.pay(ofBoth, kl)
		}
		theta *= 1 - 1e-9
	}
	return ofSafe
}

// pay notes what the token of a spend is drawn by.
func (b *budget) pay(by int, kl float64) int {
	b.tokens[ofSafe]--
	b.tokens[by]++
	b.spent += kl
	return by
}

// anchoredDivergence returns KL(p || q), not below 0; infinity where p has a token that q has not.
func anchoredDivergence(p, q []float64) (kl float64) {
	for i, v := range p {
		if v > 0 {
			kl += v * (math.Log(v) - math.Log(q[i]))
		}
	}
	return max(0, kl)
}

// fusion is the distributions between a safe and a risky one: q ∝ safe * (risky / safe)^theta. Of a token that one of them has not the ratio counts as 1, so that the
// safe model's zeros stay, and its tokens that the other has not keep their weight.
type fusion struct {
	safe   []float64 // without zeros
	ratios []float64 // their logarithms
	most   float64   // of these, 0 at least
}

func newFusion(safe, risky []float64) *fusion {
	f := &fusion{}
	for i, v := range safe {
		if v > 0 {
			a := 0.0
			if risky[i] > 0 {
				a = math.Log(risky[i]) - math.Log(v)
			}
			f.safe, f.ratios, f.most = append(f.safe, v), append(f.ratios, a), max(f.most, a)
		}
	}
	return f
}

// at returns the divergence of the distribution at theta from the safe one, and its slope: theta*E[a] - log(sum of safe*exp(theta*a)) and theta*Var[a], a being the ratios.
func (f *fusion) at(theta float64) (kl, slope float64) {
	var sum, first, second float64
	for i, a := range f.ratios {
		w := f.safe[i] * math.Exp(theta*(a-f.most))
		sum += w
		first += w * a
		second += w * a * a
	}
	mean := first / sum
	return theta*(mean-f.most) - math.Log(sum), theta * max(0, second/sum-mean*mean)
}

// solve returns the largest theta up to 1 whose divergence is at most k, above 0, or a little less: Newton's steps within a bracket, which aim a little below k, then, where
// they do not end, bisection, and the lower end of the bracket.
func (f *fusion) solve(k float64) float64 {
	if kl, _ := f.at(1); kl <= k {
		return 1
	}
	low, high := 0.0, 1.0
	theta := min(max(k/(k+1), 1e-4), 1-1e-4)
	for step := range 32 {
		kl, slope := f.at(theta)
		if kl > k {
			high = theta
		} else if low = theta; kl >= k*(1-1e-8) {
			return low
		}
		if theta -= (kl - k*(1-1e-9)) / slope; step >= 20 || !(theta > low && theta < high) {
			theta = (low + high) / 2
		}
	}
	return low
}

// mix writes the distribution at theta over the tokens of the safe one to dst, which it makes as long as need be.
func (f *fusion) mix(dst, safe []float64, theta float64) []float64 {
	dst = slices.Grow(dst[:0], len(safe))[:len(safe)]
	i, sum := 0, 0.0
	for id, v := range safe {
		if dst[id] = 0; v > 0 {
			dst[id] = v * math.Exp(theta*(f.ratios[i]-f.most))
			sum += dst[id]
			i++
		}
	}
	for id := range dst {
		dst[id] /= sum
	}
	return dst
}

// debtOf returns the mean of the n largest numbers, those below 0 being 0; of all where there are fewer, and 0 where there are none.
func debtOf(ratios []float64, n int) (debt float64) {
	slices.SortFunc(ratios, func(a, b float64) int { return cmp.Compare(b, a) })
	n = min(n, len(ratios))
	for _, r := range ratios[:n] {
		debt += max(0, r) / float64(n)
	}
	return debt
}
