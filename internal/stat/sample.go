package stat

import (
	"math"
	"slices"
)

// Sample is the values of one measurement.
type Sample []float64

// Median returns the middle value; 0: there are none.
func (s Sample) Median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Spread returns half the distance between the extremes, as a share of the median; 0: there are no values.
func (s Sample) Spread() float64 {
	if len(s) == 0 {
		return 0
	}
	return (slices.Max(s) - slices.Min(s)) / 2 / s.Median()
}

// Quantile returns the quantile of a share of sorted numbers, of which there is at least one, by linear interpolation.
func Quantile(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Ratio returns a / b; 0: b is not positive.
func Ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// Moments is the running mean of numbers and the sum of their squared distances from it (Welford, 1962).
type Moments struct {
	N            int
	Mean, Square float64
}

// Add adds a number.
func (m *Moments) Add(x float64) {
	m.N++
	d := x - m.Mean
	m.Mean += d / float64(m.N)
	m.Square += d * (x - m.Mean)
}

// Err returns the standard error of the mean; 0: there are less than two numbers.
func (m *Moments) Err() float64 {
	if m.N < 2 {
		return 0
	}
	return math.Sqrt(m.Square / float64(m.N) / float64(m.N-1))
}
