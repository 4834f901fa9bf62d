package module

import (
	"grove/internal/forest"
	"math"
)

const (
	rankTop      = 20 // of the largest logits are read
	rankFeatures = 15
)

// RankClasses is the number of classes of [Ranks]: the right token is likely the first of a slot's list, one of the next three, one of the next six, or none of these.
const RankClasses = 4

// Ranks is the head that says in which class the rank of the right token is (SpecBlock, 2026): an MLP of a slot's state and of 15 values of its logits. It is for one goroutine.
type Ranks struct {
	in, bias, out, outBias []float32
	width                  int // of a state
	hidden                 []float64
	largest                [rankTop]float64
	ids                    [rankTop]int32 // of the largest
	tuning                 *Tuning        // nil: the head stays as it is
	lessons                []lesson       // of the round
}

// NewRanks returns the rank head of a module that has one.
func NewRanks(b *forest.Block) *Ranks {
	hidden := len(b.Rank[1])
	return &Ranks{in: b.Rank[0], bias: b.Rank[1], out: b.Rank[2], outBias: b.Rank[3], width: len(b.Rank[0])/hidden - rankFeatures, hidden: make([]float64, hidden)}
}

// Class returns the class of a slot's rank, of its state and its logits, 20 at least.
func (r *Ranks) Class(state, logits []float32) int {
	values := r.features(logits)
	row := r.width + rankFeatures
	for i := range r.hidden {
		w := r.in[i*row:][:row]
		h := float64(dot(w, state)) + float64(r.bias[i])
		for j, v := range values {
			h += float64(w[r.width+j]) * v
		}
		r.hidden[i] = h / (1 + math.Exp(-h))
	}
	r.note()
	best, high := 0, math.Inf(-1)
	for c := range RankClasses {
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
func (r *Ranks) features(logits []float32) (f [rankFeatures]float64) {
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
func (r *Ranks) sort(logits []float32) {
	for i := range r.largest {
		r.largest[i] = math.Inf(-1)
	}
	for id, v := range logits {
		l := float64(v)
		if l <= r.largest[rankTop-1] {
			continue
		}
		at := rankTop - 1
		for ; at > 0 && r.largest[at-1] < l; at-- {
			r.largest[at], r.ids[at] = r.largest[at-1], r.ids[at-1]
		}
		r.largest[at], r.ids[at] = l, int32(id)
	}
}
