package remote

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// costs draws a cost with a step whose time is a line of its rows.
func costs(t *rapid.T) Cost {
	f := func(name string, from, to float64) float64 { return rapid.Float64Range(from, to).Draw(t, name) }
	a, b := f("step", 1e-4, 0.2), f("row", 0, 0.01)
	return Cost{
		Accept: f("accept", 0, 0.99), Draft: f("draft", 1e-6, 0.05), Bytes: f("bytes", 1, 1000), Bandwidth: f("bandwidth", 1e3, 1e9), RoundTrip: f("trip", 0, 1),
		Step: func(rows int) float64 { return a + b*float64(rows) },
	}
}

// TestLength holds the length of drafts to the formula and to what must be true of it.
func TestLength(t *testing.T) {
	const most = 16
	rapid.Check(t, func(t *rapid.T) {
		c := costs(t)
		n := c.Length(most)
		rate := func(n int) float64 { // FlexSpec's, as it is written
			k, a := float64(n), c.Accept
			return (1 - math.Pow(a, k+1)) / (1 - a) / (k*c.Draft + k*c.Bytes/c.Bandwidth + c.RoundTrip + c.Step(n+1))
		}
		for other := 1; other <= most; other++ {
			if rate(other) > rate(n)*(1+1e-9) {
				t.Fatalf("%d drafts are better than %d: %g and %g", other, n, rate(other), rate(n))
			}
		}
		nearer, dearer := c, c
		nearer.RoundTrip *= rapid.Float64Range(0, 1).Draw(t, "nearer")
		if less := nearer.Length(most); less > n {
			t.Fatalf("the round trip falls from %g to %g, and the drafts rise from %d to %d", c.RoundTrip, nearer.RoundTrip, n, less)
		}
		dearer.Bytes *= rapid.Float64Range(1, 1e4).Draw(t, "dearer")
		if more := dearer.Length(most); more > n {
			t.Fatalf("a draft has more bytes, and the drafts rise from %d to %d", n, more)
		}
		if far := c; c.Accept > 0.5 {
			far.RoundTrip = 1e9
			if got := far.Length(most); got != most {
				t.Fatalf("an endless round trip: %d drafts", got)
			}
		}
	})
	c := Cost{Accept: 0.5, Draft: 1, RoundTrip: 4, Step: func(int) float64 { return 4 }}
	if got := c.Tokens(3); got != 1.875 {
		t.Errorf("%g tokens of 3 drafts", got)
	}
	if n := c.Length(16); n != 2 || c.Pays(n) { // 1.5/9, 1.75/10, 1.875/11; a step alone gives 1/4
		t.Errorf("%d drafts, that pay: %v", n, c.Pays(n))
	}
	if c.RoundTrip = 0.5; !c.Pays(c.Length(16)) { // 1.5/5.5
		t.Error("drafts do not pay")
	}
}

// TestSteps learns a line, and one that has changed.
func TestSteps(t *testing.T) {
	var s Steps
	if s.Known() || s.Time(1) <= 0 {
		t.Error("something is known")
	}
	s.Add(3, time.Second)
	if got := s.Time(9); got != 1 {
		t.Errorf("of one step %g", got)
	}
	for range 200 {
		for _, rows := range []int{1, 4, 9} {
			s.Add(rows, time.Duration(10+rows)*time.Millisecond)
		}
	}
	for _, rows := range []int{1, 5, 20} {
		if got, want := s.Time(rows), 0.01+0.001*float64(rows); math.Abs(got-want) > 1e-4 {
			t.Errorf("%d rows: %g, want %g", rows, got, want)
		}
	}
	for range 200 { // longer steps for fewer rows are noise
		s.Add(1, 30*time.Millisecond)
		s.Add(5, 20*time.Millisecond)
	}
	if s.Time(1) > s.Time(5) {
		t.Error("the time falls with the rows")
	}
}

// TestAverage lets a new value count an eighth.
func TestAverage(t *testing.T) {
	var a Average
	a.Add(8)
	a.Add(16)
	if a.Value() != 9 {
		t.Errorf("%g", a.Value())
	}
}
