package plan

// A Credit decides when a drafter that runs no rows takes part: in rounds, as long as its drafts that are accepted, and that no drafter
// asked before it made, are more tokens than its time is worth; in texts, as long as this holds with the time that it takes to read them.
// So of drafters that draft the same, the quickest remains. A drafter whose time is worth next to nothing always takes part. What one text
// taught counts for the next, of which a drafter is expected to give some tokens at first.
type Credit struct {
	gain    float64 // tokens a round, averaged
	seconds float64 // of a round's call, averaged
	rounds  int     // that it is judged by
	timed   int     // rounds that the seconds are known from
	probe   pause   // rounds without it
	asked   bool    // in this round

	net   float64 // tokens a text, its time deducted, averaged
	texts int     // that it is known from
	rest  pause   // texts without it
	given int     // tokens of this text
	spent float64 // seconds of this text
	calls int     // rounds of this text
}

// pause counts what passes until a drafter is tried again although it does not pay: twice as much each time.
type pause struct{ left, length int }

// over reports whether the pause is over, and begins the next one, of at least least and at most most.
func (p *pause) over(least, most int) bool {
	if p.left--; p.left > 0 {
		return false
	}
	p.length = min(max(least, 2*p.length), most)
	p.left = p.length
	return true
}

const (
	creditRate  = 1.0 / 16
	timeRate    = 1.0 / 8
	textRate    = 1.0 / 8
	expected    = 0.1   // tokens a round that a drafter is expected to give at the beginning of a text
	free        = 0.001 // tokens a round that make no difference
	trialRounds = 8     // of which it is always asked
	firstTexts  = 4     // of which it always takes part
	leastTexts  = 4     // without it
	mostTexts   = 64
)

// Begin begins a text, and reports whether the drafter takes part.
func (c *Credit) Begin() bool {
	c.gain, c.asked = max(c.gain, expected), false
	c.given, c.spent, c.calls = 0, 0, 0
	switch {
	case c.texts < firstTexts || c.net >= 0:
		return true
	case !c.rest.over(leastTexts, mostTexts):
		return false
	}
	c.rounds = 0 // it is tried as at first
	return true
}

// End ends a text in which the drafter took part, where so many tokens are made in a second.
func (c *Credit) End(throughput float64) {
	if c.calls == 0 {
		return
	}
	net := float64(c.given) - max(0, throughput*c.spent-free*float64(c.calls))
	c.texts++
	if c.net += max(textRate, 1/float64(c.texts)) * (net - c.net); c.net >= 0 {
		c.rest = pause{}
	}
}

// Due reports whether the drafter is asked in a round, where so many tokens are made in a second.
func (c *Credit) Due(throughput float64) bool {
	c.calls++
	c.asked = c.rounds < trialRounds || throughput*c.seconds <= max(free, c.gain) || c.probe.over(leastWait, mostWait)
	return c.asked
}

// Read adds time that the drafter took beside its calls, such as to read a text.
func (c *Credit) Read(seconds float64) { c.spent += seconds }

// ObserveTime learns how long the drafter took in a round, which stands for so many.
func (c *Credit) ObserveTime(seconds float64, rounds int) {
	if c.timed++; c.timed == 1 {
		c.seconds = seconds
	}
	seconds = min(seconds, 8*c.seconds) // the machine may have done something else
	c.spent += seconds * float64(rounds)
	c.seconds += timeRate * (seconds - c.seconds)
}

// Seconds returns the time of a round's call, 0 where it is not known.
func (c *Credit) Seconds() float64 { return c.seconds }

// Observe learns how many tokens the drafter gave in a round, if it was asked.
func (c *Credit) Observe(tokens int) {
	if !c.asked {
		return
	}
	c.rounds++
	c.given += tokens
	c.gain += creditRate * (float64(tokens) - c.gain)
	if tokens > 0 {
		c.probe = pause{}
	}
}
