package score

import "math"

// Accuracy counts questions that were answered rightly. The zero value is ready.
type Accuracy struct{ Right, All int }

// Add counts a question.
func (a *Accuracy) Add(right bool) {
	if a.All++; right {
		a.Right++
	}
}

// Share returns the share of right answers; 0 of no questions.
func (a Accuracy) Share() float64 { return float64(a.Right) / float64(max(a.All, 1)) }

// Interval returns the bounds of the share at a confidence of 95 % (Wilson 1927); 0 and 1 of no questions.
func (a Accuracy) Interval() (low, high float64) {
	if a.All == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	n, p := float64(a.All), a.Share()
	middle := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return max(0, (middle-half)/scale), min(1, (middle+half)/scale)
}
