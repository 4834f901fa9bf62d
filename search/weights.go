package search

import (
	"math"

	"grove/internal/stat"
)

// Shares returns the weights of samples, which sum to 1, from their logarithms. At least one is above minus infinity.
func Shares(logs []float64) []float64 {
	most, sum := math.Inf(-1), 0.0
	for _, l := range logs {
		most = max(most, l)
	}
	w := make([]float64, len(logs))
	for i, l := range logs {
		w[i] = math.Exp(l - most)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// LogMean returns the logarithm of the mean of numbers from their logarithms.
func LogMean(logs []float64) float64 {
	most, sum := math.Inf(-1), 0.0
	for _, l := range logs {
		most = max(most, l)
	}
	if math.IsInf(most, -1) {
		return most
	}
	for _, l := range logs {
		sum += math.Exp(l - most)
	}
	return most + math.Log(sum/float64(len(logs)))
}

// Effective returns how many samples of equal weights are worth as much as samples with shares w.
func Effective(w []float64) float64 {
	sum := 0.0
	for _, v := range w {
		sum += v * v
	}
	return 1 / sum
}

// Systematic returns how many copies each sample gets: of the points u, u+1, ... the ones in its part of the sum. u is from 0 to 1.
func Systematic(w []float64, u float64) []int {
	n := float64(len(w))
	copies, sum, given := make([]int, len(w)), 0.0, 0
	for i, v := range w {
		sum += v * n
		for given < len(w) && u+float64(given) < sum {
			copies[i], given = copies[i]+1, given+1
		}
	}
	for ; given < len(w); given++ { // the sum is a little less than n
		copies[Choose(w, .5)]++
	}
	return copies
}

// Choose returns the sample in whose part of the sum a number from 0 to 1 lies.
func Choose(w []float64, u float64) int {
	last := 0
	for i, v := range w {
		if v > 0 {
			last = i
		}
		if u -= v; u < 0 {
			return i
		}
	}
	return last
}

// Weights are those of samples since they were last resampled, as logarithms; minus infinity: the sample is dead.
type Weights struct {
	Logs   []float64
	before float64 // the logarithm of the product of the mean weights at the resamplings
}

// NewWeights returns equal weights of n samples.
func NewWeights(n int) *Weights { return &Weights{Logs: make([]float64, n)} }

// Alive reports whether a sample has weight.
func (w *Weights) Alive() bool { return !math.IsInf(LogMean(w.Logs), -1) }

// Shares returns the weights as parts of 1; some sample is alive.
func (w *Weights) Shares() []float64 { return Shares(w.Logs) }

// LogNormaliser returns the logarithm of the estimate of the mean weight of all that could be drawn.
func (w *Weights) LogNormaliser() float64 { return w.before + LogMean(w.Logs) }

// Resample copies samples in place of others, as their weights say, and makes the weights equal. from[i] is the sample whose copy sample i is.
func (ss *Samples) Resample(w *Weights, u float64) (from []int, err error) {
	copies := Systematic(w.Shares(), u)
	from = make([]int, len(copies))
	at := 0
	for to, n := range copies {
		if from[to] = to; n > 0 {
			continue
		}
		for copies[at] < 2 {
			at++
		}
		copies[at]--
		if err := ss.Copy(to, at); err != nil {
			return nil, err
		}
		from[to] = at
	}
	w.before = w.LogNormaliser()
	clear(w.Logs)
	return from, nil
}

// Entropy returns that of the distribution of logits, in nats.
func Entropy(logits []float32) float64 {
	sum, mean := stat.LogSumExp(logits), 0.0
	for _, l := range logits {
		if p := math.Exp(float64(l) - sum); p > 0 { // a masked token has none
			mean += p * float64(l)
		}
	}
	return sum - mean
}
