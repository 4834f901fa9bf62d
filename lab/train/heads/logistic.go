package main

import (
	"math"
	"slices"
	"sync"
)

// fixedChain returns the name of a method that drafts chains of four.
var fixedChain = sync.OnceValue(func() string { return register("judged-4", 4, nil) })

// logistic is a logistic regression on standardised values.
type logistic struct {
	mean, deviation []float64
	w               []float64 // and the bias
}

// strengths are the values of C that AutoJudge searches: the larger, the weaker the penalty.
func strengths() []float64 {
	all := []float64{1, 3, 10, 50, 100}
	for k := 1; k <= 14; k++ {
		all = append(all, math.Pow(10, -float64(k)/2))
	}
	return all
}

// standard returns an example's values, standardised, and a 1 for the bias.
func (l *logistic) standard(state []float64) []float64 {
	x := make([]float64, len(state)+1)
	for i, v := range state {
		x[i] = (v - l.mean[i]) / l.deviation[i]
	}
	x[len(state)] = 1
	return x
}

// regress minimises the sum of the losses plus |w|²/2C by Newton's method. The bias has no penalty.
func regress(all []mined, c float64) *logistic {
	d := len(all[0].state)
	l := &logistic{make([]float64, d), make([]float64, d), make([]float64, d+1)}
	for _, e := range all {
		for i, v := range e.state {
			l.mean[i] += v / float64(len(all))
		}
	}
	for _, e := range all {
		for i, v := range e.state {
			l.deviation[i] += (v - l.mean[i]) * (v - l.mean[i]) / float64(len(all))
		}
	}
	for i, v := range l.deviation {
		l.deviation[i] = math.Sqrt(max(v, 1e-12))
	}
	xs := make([][]float64, len(all))
	for i, e := range all {
		xs[i] = l.standard(e.state)
	}
	for range 20 {
		slope, curve := make([]float64, d+1), make([][]float64, d+1)
		for i := range curve {
			curve[i] = make([]float64, d+1)
			if curve[i][i] = 1e-9; i < d {
				slope[i], curve[i][i] = l.w[i]/c, 1/c
			}
		}
		for n, x := range xs {
			p := sigmoid(dot(l.w, x))
			for i, v := range x {
				slope[i] += (p - all[n].important) * v
				h := p * (1 - p) * v
				for k := range i + 1 {
					curve[i][k] += h * x[k]
				}
			}
		}
		largest := 0.0
		for i, v := range solve(curve, slope) {
			l.w[i] -= v
			largest = max(largest, math.Abs(v))
		}
		if largest < 1e-6 {
			break
		}
	}
	return l
}

// solve solves a x = b by Cholesky's factors of a, of which the lower half is given and overwritten.
func solve(a [][]float64, b []float64) []float64 {
	n, x := len(b), slices.Clone(b)
	for i := range n {
		for k := range i + 1 {
			sum := a[i][k] - dot(a[i][:k], a[k][:k])
			if k < i {
				a[i][k] = sum / a[k][k]
			} else {
				a[i][i] = math.Sqrt(max(sum, 1e-12))
			}
		}
		x[i] = (x[i] - dot(a[i][:i], x[:i])) / a[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= a[k][i] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}

// important returns the probability that an example is important.
func (l *logistic) important(state []float64) float64 { return sigmoid(dot(l.w, l.standard(state))) }

func (l *logistic) auc(all []mined) float64 {
	var scores, labels []float64
	for _, e := range all {
		scores, labels = append(scores, l.important(e.state)), append(labels, e.important)
	}
	return auc(scores, labels)
}

// threshold returns the score that a share of the important examples reach, and the share of the others that are below it.
func (l *logistic) threshold(all []mined, recall float64) (at, passes float64) {
	var important, other []float64
	for _, e := range all {
		if s := l.important(e.state); e.important > 0 {
			important = append(important, s)
		} else {
			other = append(other, s)
		}
	}
	if len(important) == 0 {
		return 1, 1
	}
	slices.Sort(important)
	at = important[min(len(important)-1, int((1-recall)*float64(len(important))))]
	for _, s := range other {
		if s < at {
			passes += 1 / float64(len(other))
		}
	}
	return at, passes
}

// plain returns weights and bias for values that are not standardised.
func (l *logistic) plain() (weight []float64, bias float64) {
	bias = l.w[len(l.mean)]
	for i, m := range l.mean {
		weight = append(weight, l.w[i]/l.deviation[i])
		bias -= weight[i] * m
	}
	return weight, bias
}
