package remote

import "time"

// Average is a moving average: a new value counts an eighth. The zero value has none.
type Average struct {
	value float64
	known bool
}

// Add adds a value.
func (a *Average) Add(v float64) {
	if !a.known {
		a.value, a.known = v, true
		return
	}
	a.value += (v - a.value) / 8
}

// Value returns the average; 0 where nothing was added.
func (a *Average) Value() float64 { return a.value }

// Cost is the cost of a round whose drafts are made here and verified there; times are in seconds.
type Cost struct {
	Accept    float64                // the probability that a draft is accepted where all before it are
	Draft     float64                // time of a draft
	Bytes     float64                // of a draft
	Bandwidth float64                // bytes a second; 0: no bound
	RoundTrip float64                // of the link
	Step      func(rows int) float64 // time of the far side's step; it does not fall with the rows
}

// Tokens returns the tokens that a round of n drafts gives on average: 1 + a + ... + a^n.
func (c *Cost) Tokens(n int) float64 {
	sum, power := 1.0, 1.0
	for range n {
		power *= c.Accept
		sum += power
	}
	return sum
}

// Round returns the time of a round of n drafts that are waited for.
func (c *Cost) Round(n int) float64 {
	t := float64(n)*c.Draft + c.RoundTrip + c.Step(n+1)
	if c.Bandwidth > 0 {
		t += float64(n) * c.Bytes / c.Bandwidth
	}
	return t
}

// Length returns the number of drafts, from 1 to most, with the most tokens a second; of equally good ones the smallest (FlexSpec). It does not fall where the
// round trip grows, and does not grow where a draft needs more time or bytes.
func (c *Cost) Length(most int) int {
	best, rate := 1, 0.0
	for n := 1; n <= most; n++ {
		if r := c.Tokens(n) / c.Round(n); r > rate {
			best, rate = n, r
		}
	}
	return best
}

// Pays reports whether rounds of n drafts that are waited for give more tokens a second than steps without drafts, which wait for nothing.
func (c *Cost) Pays(n int) bool { return c.Tokens(n)/c.Round(n) > 1/c.Step(1) }

// Steps learns what steps take by their rows: the line a + b*rows nearest to the times, where old ones count less and less. The zero value
// knows nothing.
type Steps struct{ n, x, y, xx, xy float64 }

// Add adds the time of a step.
func (s *Steps) Add(rows int, took time.Duration) {
	const keep = 15.0 / 16
	x, y := float64(rows), took.Seconds()
	s.n, s.x, s.y = s.n*keep+1, s.x*keep+x, s.y*keep+y
	s.xx, s.xy = s.xx*keep+x*x, s.xy*keep+x*y
}

// Known reports whether a step was added.
func (s *Steps) Known() bool { return s.n > 0 }

// Time returns the time of a step in seconds. It does not fall with the rows, and is above 0.
func (s *Steps) Time(rows int) float64 {
	const least = 1e-6
	if s.n == 0 {
		return least
	}
	slope := 0.0
	if spread := s.n*s.xx - s.x*s.x; spread > 1e-9 {
		slope = max(0, (s.n*s.xy-s.x*s.y)/spread)
	}
	mean := s.x / s.n
	return max(least, s.y/s.n+slope*(max(float64(rows), 1)-mean), slope*float64(rows))
}
