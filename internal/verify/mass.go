package verify

import "grove/internal/text/token"

// tiny is the largest probability mass that is taken for a rounding error.
const tiny = 1e-12

// widen copies probabilities to dst, whose storage it reuses.
func widen(dst []float64, p []float32) []float64 {
	dst = dst[:0]
	for _, v := range p {
		dst = append(dst, float64(v))
	}
	return dst
}

// excess returns the mass of the positive part of share * p - q, without what rounding leaves.
func excess(p []float64, ids []token.ID, q []float64, share float64) float64 {
	left := share * (1 - mass(p, ids))
	for i, id := range ids {
		left += max(0, share*p[id]-q[i])
	}
	if left <= tiny {
		return 0
	}
	return left
}

// subtract makes p the positive part of share * p - q, normalised. It returns false, and leaves p as it is, where
// nothing remains.
func subtract(p []float64, ids []token.ID, q []float64, share float64) bool {
	if excess(p, ids, q, share) == 0 {
		return false
	}
	for i, id := range ids {
		p[id] = max(0, share*p[id]-q[i]) / share
	}
	return normalise(p)
}

// mass returns the sum of the probabilities of some tokens.
func mass(p []float64, ids []token.ID) (sum float64) {
	for _, id := range ids {
		sum += p[id]
	}
	return sum
}

// normalise makes p sum to 1. It returns false, and leaves p as it is, where p has no mass.
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
