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
