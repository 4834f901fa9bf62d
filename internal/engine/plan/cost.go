// Package plan decides what is worth a row of a step: it knows what steps cost, and picks the drafts that
// pay, of one round or of several that share a step.
package plan

import (
	"math"
	"slices"
)

// Cost is the seconds of a step on this machine, T(rows, depth, rows with logits, experts touched), as
// measured by the engine and corrected by steps that are run. The zero value knows nothing.
//
//	T = layers(rows) + depth * perToken(rows) + head(logits) + expert * experts touched
//
// with each function linear between the sizes that were measured and beyond them. It is not safe for
// concurrent use.
type Cost struct {
	Rows   []int     `json:"rows"`   // sizes measured, ascending
	Layers []float64 `json:"layers"` // seconds of all layers, experts aside, by size
	Depth  Curve     `json:"depth"`  // seconds a token of depth, by rows
	Head   Curve     `json:"head"`   // seconds of the head, by rows with logits
	Expert float64   `json:"expert"` // seconds for each expert that a layer's rows touch

	// Part is the seconds of the head for one row, by the tokens of the vocabulary that it computes; the last size is all of them.
	Part Curve `json:"part"`

	Correction []float64 `json:"correction"` // by size: real seconds over predicted ones, averaged
}

// Curve is a function that is linear between measured points and beyond them.
type Curve struct {
	X []int     `json:"x"`
	Y []float64 `json:"y"`
}

// At returns the value at x, never below zero.
func (c Curve) At(x int) float64 {
	switch len(c.X) {
	case 0:
		return 0
	case 1:
		return c.Y[0]
	}
	i := min(max(1, segment(c.X, x)), len(c.X)-1)
	slope := (c.Y[i] - c.Y[i-1]) / float64(c.X[i]-c.X[i-1])
	return max(0, c.Y[i-1]+slope*float64(x-c.X[i-1]))
}

// segment returns the first place in xs whose value is not below x.
func segment(xs []int, x int) int {
	i, _ := slices.BinarySearch(xs, x)
	return i
}

// StepSize is the size of a step, by which its seconds are predicted.
type StepSize struct {
	Rows, Depth, Logits, Experts int
}

// Add adds rows of one sequence to a step's; [StepSize.Mean] then makes its depth that of the mean row.
func (s *StepSize) Add(rows, depth int) {
	s.Rows += rows
	s.Depth += rows * depth
}

// Mean turns the sum of the rows' depths into their mean.
func (s *StepSize) Mean() {
	if s.Rows > 0 {
		s.Depth /= s.Rows
	}
}

// Seconds predicts the time of a step.
func (c *Cost) Seconds(s StepSize) float64 {
	t := c.measured(s)
	if len(c.Correction) > 0 {
		t *= c.Correction[c.bucket(s.Rows)]
	}
	return t
}

func (c *Cost) measured(s StepSize) float64 {
	t := Curve{c.Rows, c.Layers}.At(s.Rows) + float64(s.Depth)*c.Depth.At(s.Rows) + c.Expert*float64(s.Experts)
	if s.Logits > 0 {
		t += c.Head.At(s.Logits)
	}
	return t
}

func (c *Cost) bucket(rows int) int { return min(segment(c.Rows, rows), len(c.Rows)-1) }

// correctionRate is the weight of one step in the running average: some thirty steps replace the past.
const correctionRate = 1.0 / 32

// Observe corrects the prediction by the time that a step took. Steps that were far off, because the
// machine did something else, count as twice or half the prediction. A cost without corrections stays as it is.
func (c *Cost) Observe(s StepSize, seconds float64) {
	predicted := c.measured(s)
	if len(c.Correction) == 0 || predicted <= 0 || s.Rows > c.Rows[len(c.Rows)-1] {
		return
	}
	ratio := min(2, max(0.5, seconds/predicted))
	at := &c.Correction[c.bucket(s.Rows)]
	*at += correctionRate * (ratio - *at)
}

// Valid reports whether a cost that was read from a file can be computed with.
func (c *Cost) Valid() bool {
	if len(c.Rows) == 0 || len(c.Correction) != len(c.Rows) || !(Curve{c.Rows, c.Layers}).valid() ||
		!c.Depth.valid() || !c.Head.valid() || !c.Part.valid() || !sane(c.Expert) {
		return false
	}
	for _, v := range c.Correction {
		if !sane(v) || v == 0 {
			return false
		}
	}
	return true
}

func (c Curve) valid() bool {
	if len(c.X) != len(c.Y) {
		return false
	}
	for i := range c.X {
		if c.X[i] < 1 || i > 0 && c.X[i] <= c.X[i-1] || !sane(c.Y[i]) {
			return false
		}
	}
	return true
}

func sane(v float64) bool { return v >= 0 && v <= math.MaxFloat32 }
