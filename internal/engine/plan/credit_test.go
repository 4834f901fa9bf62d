package plan

import "testing"

// text lets a drafter take part in a text of 40 rounds, in each of which it gives tokens if it is asked, and takes so many seconds; a step
// takes 1 and gives one token. It returns how often the drafter was asked, -1: it took no part.
func text(c *Credit, tokens int, seconds float64) (asked int) {
	if !c.Begin() {
		return -1
	}
	for range 40 {
		if c.Due(1) {
			asked++
			c.ObserveTime(seconds, 1)
			c.Observe(tokens)
		}
	}
	c.End(1)
	return asked
}

// TestCredit: a drafter that takes no time is always asked. One that takes a fifth of a step and gives nothing is asked a few times, and
// then not at all but in one text of ever more; one that gives more than it takes is always asked, and is found again when it does.
func TestCredit(t *testing.T) {
	var quick, slow Credit
	for range 100 {
		if n := text(&quick, 0, 1e-4); n != 40 {
			t.Fatalf("a quick drafter was asked %d times in 40 rounds", n)
		}
	}
	texts, asked := 0, 0
	for range 100 {
		if n := text(&slow, 0, 0.2); n >= 0 {
			texts, asked = texts+1, asked+n
		}
	}
	if texts < 6 || texts > 12 || asked > 10*texts {
		t.Errorf("a slow drafter that gives nothing was asked %d times in %d of 100 texts", asked, texts)
	}
	in := 0
	for range 200 {
		if n := text(&slow, 1, 0.2); n >= 30 {
			in++
		}
	}
	if in < 130 {
		t.Errorf("a slow drafter that gives more than it takes by now was asked in %d of 200 texts", in)
	}
}

// TestCreditRead: the time to read a text counts. A drafter that gives ten tokens of each text, and takes the time of twenty to read it,
// takes no part in most; one that takes the time of five takes part in all.
func TestCreditRead(t *testing.T) {
	for _, c := range []struct {
		read        float64
		least, most int
	}{{20, 5, 12}, {5, 100, 100}} {
		var credit Credit
		in := 0
		for range 100 {
			if !credit.Begin() {
				continue
			}
			in++
			credit.Read(c.read)
			for round := range 40 {
				if credit.Due(1) {
					credit.Observe(min(1, max(0, 10-round)))
				}
			}
			credit.End(1)
		}
		if in < c.least || in > c.most {
			t.Errorf("reading for %v s: it took part in %d of 100 texts", c.read, in)
		}
	}
}
