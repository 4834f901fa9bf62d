package plan

// A Backoff decides when a drafter that takes noticeable time is asked: as long as what it promised, its time
// deducted, was more than the others' drafts do, and now and then to see whether that has changed. What one text taught
// counts for the next.
type Backoff struct {
	worth  float64 // tokens a round, averaged
	rounds int     // that it was judged by
	probe  pause   // rounds until it is asked again although it is not worth it
	read   bool    // the text's prompt
	again  bool    // it has just read that, or was worth it after all: what it is worth now is to be seen
}

const (
	worthRate   = 1.0 / 8
	firstRounds = 3 // in which it is always asked
	leastWait   = 32
	mostWait    = 512
)

// Begin notes that a text begins, whose prompt the drafter has yet to read.
func (d *Backoff) Begin() { d.read, d.again = false, false }

// Due reports whether the drafter is asked in a round in which the others promise gain.
func (d *Backoff) Due(gain float64) bool {
	if d.rounds < firstRounds || d.again || d.worth > gain && d.worth > 0 {
		d.again = false
		return true
	}
	return d.probe.over(leastWait, mostWait)
}

// Observe learns what asking was worth. The first round of a text, which reads the prompt, teaches nothing.
func (d *Backoff) Observe(worth float64) {
	if !d.read {
		d.read, d.again = true, true
		return
	}
	if d.rounds++; d.rounds == 1 {
		d.worth = worth
	}
	d.worth += worthRate * (worth - d.worth)
	if d.again = worth > 0; d.worth > 0 {
		d.probe.length = 0
	}
}
