// Package stat holds the statistics of measurements and of tests.
package stat

import (
	"fmt"
	"math"
	"slices"
)

// ChiSquare compares counts with the counts that a distribution makes expected, cell by cell, by Pearson's test. Cells
// where less than 5 is expected are put together. It returns an error where the counts are as far from the expected
// ones as those of the true distribution are once in ten thousand times, where a cell counts what cannot be, and where
// the totals differ.
func ChiSquare(counts, expected []float64) error {
	if len(counts) != len(expected) {
		return fmt.Errorf("stat: %d counts for %d cells", len(counts), len(expected))
	}
	chi, freedom := 0.0, -1
	var rest, restExpected, total, totalExpected float64
	cell := func(count, expected float64) {
		if expected > 0 {
			chi += (count - expected) * (count - expected) / expected
			freedom++
		}
	}
	for i, e := range expected {
		if e <= 0 && counts[i] > 0 {
			return fmt.Errorf("stat: cell %d: it counts %v where the distribution gives none", i, counts[i])
		}
		total, totalExpected = total+counts[i], totalExpected+e
		if e < 5 {
			rest, restExpected = rest+counts[i], restExpected+e
			continue
		}
		cell(counts[i], e)
	}
	cell(rest, restExpected)
	if math.Abs(total-totalExpected) > 0.5 {
		return fmt.Errorf("stat: the cells count %v where %v are expected", total, totalExpected)
	}
	if limit := ChiSquareLimit(max(1, freedom)); chi > limit {
		return fmt.Errorf("stat: chi-square %.1f with %d degrees of freedom; it must not exceed %.1f", chi, freedom, limit)
	}
	return nil
}

// leastCount is the least count of a value, in both samples together, that makes a cell of its own in [Homogeneity].
const leastCount = 20

// Homogeneity returns the chi-square statistic of two samples of counts by value, which one distribution may have made, and its degrees of
// freedom. Rare values share one cell.
func Homogeneity[V comparable](a, b map[V]float64) (chi float64, freedom int) {
	values, sumA, sumB := map[V]bool{}, 0.0, 0.0
	for v, n := range a {
		values[v] = true
		sumA += n
	}
	for v, n := range b {
		values[v] = true
		sumB += n
	}
	if sumA == 0 || sumB == 0 {
		return 0, 1
	}
	cell := func(x, y float64) {
		if x+y == 0 {
			return
		}
		d := x*math.Sqrt(sumB/sumA) - y*math.Sqrt(sumA/sumB)
		chi += d * d / (x + y)
		freedom++
	}
	restA, restB := 0.0, 0.0
	for v := range values {
		if a[v]+b[v] < leastCount {
			restA, restB = restA+a[v], restB+b[v]
			continue
		}
		cell(a[v], b[v])
	}
	cell(restA, restB)
	return chi, max(1, freedom-1)
}

// ChiSquareLimit returns the chi-square that is exceeded by chance once in ten thousand times, by Wilson and
// Hilferty's approximation, which is up to 8 % too large.
func ChiSquareLimit(freedom int) float64 {
	f := float64(freedom)
	return f * math.Pow(1-2/(9*f)+3.719*math.Sqrt(2/(9*f)), 3)
}

// LogSumExp returns the logarithm of the sum of the exponentials of logits.
func LogSumExp(row []float32) float64 {
	top := float64(slices.Max(row))
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	return top + math.Log(sum)
}

// Softmax returns the probabilities of logits.
func Softmax(logits []float32) []float64 {
	p, top, sum := make([]float64, len(logits)), float64(slices.Max(logits)), 0.0
	for i, l := range logits {
		p[i] = math.Exp(float64(l) - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Logistic returns the slope and the value at 0 of the logistic function of a number that is likeliest to give false for the numbers of the first set and true for those of the second:
// Newton's steps on a weakly bounded likelihood.
func Logistic(wrong, right []float64) (slope, at0 float64) {
	const bound = 1e-6 // so that there is a finite one where the sets can be divided
	for range 100 {
		var h01 float64
		g0, g1, h00, h11 := -bound*at0, -bound*slope, bound, bound
		for kind, set := range [][]float64{wrong, right} {
			for _, x := range set {
				p := 1 / (1 + math.Exp(-at0-slope*x))
				miss, w := float64(kind)-p, p*(1-p)
				g0, g1 = g0+miss, g1+miss*x
				h00, h01, h11 = h00+w, h01+w*x, h11+w*x*x
			}
		}
		det := h00*h11 - h01*h01
		d0, d1 := (h11*g0-h01*g1)/det, (h00*g1-h01*g0)/det
		if size := math.Hypot(d0, d1); size > 5 { // far steps overshoot
			d0, d1 = 5*d0/size, 5*d1/size
		}
		at0, slope = at0+d0, slope+d1
		if math.Hypot(d0, d1) < 1e-9 {
			break
		}
	}
	return slope, at0
}
