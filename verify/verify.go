// Package verify holds the rules by which guesses become text, as pure functions of the target's distributions,
// the guesses and random numbers.
//
// [Match] is exact: it draws from the target as plain decoding does, and walks to the guess that was drawn; where
// drafter and target share the noise of the draw it is Gumbel-coupled matching, without further ado. [Rules.Reject]
// and [Rules.Block] leave the target's distribution as it is, but not the text that a seed gives; [Typical] is lossy.
package verify

import (
	"math"
	"slices"

	"grove/text/token"
)

// Root is the end of the text, as a node.
const Root = -1

// Match walks down from the root: draw returns the token that plain decoding draws behind a node, child the child
// of a node with a token, and false where none was run. Every drawn token is part of the answer. The walk ends
// where no guess matches, or with draw's error.
func Match(draw func(node int) (token.ID, error), child func(node int, id token.ID) (int, bool)) error {
	for node, ok := Root, true; ok; {
		id, err := draw(node)
		if err != nil {
			return err
		}
		node, ok = child(node, id)
	}
	return nil
}

// Distribution is a probability distribution over some tokens; all others have none.
type Distribution struct {
	IDs []token.ID
	P   []float32 // above zero; they sum to 1
}

// Of returns the probability of a token.
func (l Distribution) Of(id token.ID) float64 {
	if i := slices.Index(l.IDs, id); i >= 0 {
		return float64(l.P[i])
	}
	return 0
}

// Rules holds scratch space of the rules that need some. It is not safe for concurrent use.
type Rules struct {
	q    []float64
	keep []float64
}

// tiny is what a difference of sums of probabilities is worth nothing below.
const tiny = 1e-12

// Reject tries the children of a node in the order in which they were drawn from q without replacement, and returns
// the place of the one that is accepted, or -1. p is the target's distribution over the vocabulary; it becomes
// the distribution of the token to draw instead where none is accepted. u gives numbers from 0 to below 1, one for
// each child.
//
// Source: recursive rejection sampling, Recursive Speculative Decoding (Jeon et al. 2024), section 3.
func (r *Rules) Reject(p []float64, q Distribution, children []token.ID, u func(child int) float64) int {
	r.q = r.q[:0]
	for _, w := range q.P {
		r.q = append(r.q, float64(w))
	}
	for k, c := range children {
		at := slices.Index(q.IDs, c)
		if at < 0 {
			return -1 // not drawn from q: nothing is known of it
		}
		if u(k)*r.q[at] < p[c] {
			return k
		}
		if !subtract(p, q.IDs, r.q, 1) {
			return k // p and q are equal but for rounding
		}
		r.q[at] = 0
		if !normalise(r.q) {
			return -1 // all that q holds was tried
		}
	}
	return -1
}

// subtract makes p the positive part of share * p - q, normalised; false, and p as it was, where nothing is left.
func subtract(p []float64, ids []token.ID, q []float64, share float64) bool {
	left := share * (1 - mass(p, ids))
	for i, id := range ids {
		left += max(0, share*p[id]-q[i])
	}
	if left <= tiny {
		return false
	}
	for i, id := range ids {
		p[id] = max(0, share*p[id]-q[i]) / share
	}
	return normalise(p)
}

// mass is what p gives to some tokens.
func mass(p []float64, ids []token.ID) (sum float64) {
	for _, id := range ids {
		sum += p[id]
	}
	return sum
}

func normalise(p []float64) bool {
	sum := 0.0
	for _, v := range p {
		sum += v
	}
	if sum <= tiny {
		return false
	}
	for i := range p {
		p[i] /= sum
	}
	return true
}

// Block accepts the first n tokens of a chain, and leaves in p(n) the distribution of the token that follows them.
// p(i) is the target's distribution behind the first i tokens, over the vocabulary; q[i] is what token i was drawn
// from. u gives numbers from 0 to below 1, one for each token. It never accepts fewer tokens, on average, than
// the rule that tests token by token.
//
// Source: Block Verification Accelerates Speculative Decoding (Sun et al. 2024), algorithm 2.
func (r *Rules) Block(chain []token.ID, p func(i int) []float64, q []Distribution, u func(i int) float64) (n int) {
	r.keep = append(r.keep[:0], 1)
	w := 1.0
	for i, id := range chain {
		switch of := q[i].Of(id); {
		case of <= 0:
			w = 0
		default:
			w = min(1, w*p(i)[id]/of)
		}
		r.keep = append(r.keep, w)
	}
	n = len(chain)
	for ; n > 0; n-- {
		if u(n-1) < r.chance(n, chain, p, q) {
			break
		}
	}
	if n < len(chain) {
		r.q = r.q[:0]
		for _, v := range q[n].P {
			r.q = append(r.q, float64(v))
		}
		subtract(p(n), q[n].IDs, r.q, r.keep[n])
	}
	return n
}

// chance is the probability of accepting n tokens where no more were.
func (r *Rules) chance(n int, chain []token.ID, p func(i int) []float64, q []Distribution) float64 {
	w := r.keep[n]
	if n == len(chain) {
		return w
	}
	rest := w
	for i, id := range q[n].IDs {
		rest -= min(w*p(n)[id], float64(q[n].P[i]))
	}
	rest = max(0, rest)
	if rest+1-w <= 0 {
		return 1
	}
	return rest / (rest + 1 - w)
}

// Typicality says what typical acceptance lets through: a token of probability above the lesser of Floor and Share
// times the exponential of minus the entropy.
type Typicality struct{ Floor, Share float64 }

// DefaultTypicality is that of Medusa's generate call.
var DefaultTypicality = Typicality{Floor: 0.09, Share: 0.3}

// Threshold returns the probability that a token must exceed under p. It is lossy: other texts than the target's come
// out above temperature 0; where p is one token's, that one alone passes.
//
// Source: Medusa (Cai et al. 2024), section 2.3.1.
func (t Typicality) Threshold(p []float64) float64 {
	entropy := 0.0
	for _, v := range p {
		entropy -= v * math.Log(v+1e-5)
	}
	return min(t.Floor, t.Share*math.Exp(-entropy))
}

// Truncate removes the tokens below the threshold from p.
func (t Typicality) Truncate(p []float64) {
	least := t.Threshold(p)
	for i, v := range p {
		if v < least {
			p[i] = 0
		}
	}
	normalise(p)
}
