package specblock

import (
	"math"

	"grove/method"
)

const (
	top      = 20 // of the largest logits are read
	features = 15
	classes  = 4
)

// branches is how many children a slot has by the class of its rank: the right token is likely the first, one of the first four, one of the first ten, or none of
// these, where the chain ends.
var branches = [classes]int{2, 4, 10, 0}

// rank is the head that says in which class the rank of the right token is: an MLP of the slot's state and of 15 values of its logits. It is for one goroutine.
type rank struct {
	in, bias, out, outBias []float32
	width                  int // of a state
	hidden                 []float64
	largest                [top]float64
}

func newRank(b *method.Block) *rank {
	hidden := len(b.Rank[1])
	return &rank{in: b.Rank[0], bias: b.Rank[1], out: b.Rank[2], outBias: b.Rank[3], width: len(b.Rank[0])/hidden - features, hidden: make([]float64, hidden)}
}

// class returns the class of a slot's rank.
func (r *rank) class(state, logits []float32) int {
	values := r.features(logits)
	row := r.width + features
	for i := range r.hidden {
		w := r.in[i*row:][:row]
		h := float64(dot(w, state)) + float64(r.bias[i])
		for j, v := range values {
			h += float64(w[r.width+j]) * v
		}
		r.hidden[i] = h / (1 + math.Exp(-h))
	}
	best, high := 0, math.Inf(-1)
	for c := range classes {
		score := float64(r.outBias[c])
		for i, h := range r.hidden {
			score += float64(r.out[c*len(r.hidden)+i]) * h
		}
		if score > high {
			best, high = c, score
		}
	}
	return best
}

// dot returns the product of the first values of w with x, in four sums.
func dot(w, x []float32) float32 {
	var s [4]float32
	w = w[:len(x)]
	for len(x) >= 4 {
		s[0], s[1], s[2], s[3] = s[0]+w[0]*x[0], s[1]+w[1]*x[1], s[2]+w[2]*x[2], s[3]+w[3]*x[3]
		w, x = w[4:], x[4:]
	}
	for i := range x {
		s[0] += w[i] * x[i]
	}
	return s[0] + s[1] + s[2] + s[3]
}

// features returns, by the softmax of the 20 largest logits, the logarithms of the ten largest probabilities, by how much the first is above the second, the third and the fifth, the
// largest probability, and the entropy.
func (r *rank) features(logits []float32) (f [features]float64) {
	r.sort(logits)
	sum := 0.0
	for _, l := range r.largest {
		sum += math.Exp(l - r.largest[0])
	}
	lse := r.largest[0] + math.Log(sum)
	for i := range 10 {
		f[i] = r.largest[i] - lse
	}
	for i, k := range [...]int{1, 2, 4} {
		f[10+i] = r.largest[0] - r.largest[k]
	}
	f[13] = math.Exp(f[0])
	for _, l := range r.largest {
		f[14] -= math.Exp(l-lse) * (l - lse)
	}
	return f
}

// sort finds the largest logits, of which there are as many.
func (r *rank) sort(logits []float32) {
	for i := range r.largest {
		r.largest[i] = math.Inf(-1)
	}
	for _, v := range logits {
		l := float64(v)
		if l <= r.largest[top-1] {
			continue
		}
		at := top - 1
		for ; at > 0 && r.largest[at-1] < l; at-- {
			r.largest[at] = r.largest[at-1]
		}
		r.largest[at] = l
	}
}
