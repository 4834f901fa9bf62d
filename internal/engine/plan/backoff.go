package plan

// A Backoff decides when a drafter that takes noticeable time is asked: as long as what it promised, its time
// deducted, was more than the others' drafts do, and now and then to see whether that has changed. It reads a text's prompt, in the first
// round in which it is asked, where it is worth that in the rounds that texts have. What one text taught counts for the next.
type Backoff struct {
	worth  float64 // tokens a round, averaged
	rounds int     // that it was judged by
	probe  pause   // rounds until it is asked again although it is not worth it
	read   bool    // the text's prompt
	again  bool    // it has just read that, or was worth it after all: what it is worth now is to be seen

	prompt float64 // tokens that reading a prompt costs, averaged
	length float64 // rounds of a text, averaged
	round  int     // of this text
}

const (
	worthRate    = 1.0 / 8
	firstRounds  = 3 // in which it is always asked
	leastWait    = 32
	mostWait     = 512
	promptRounds = 64 // without it for each token but one that reading a prompt costs: little more than one token of 64
)

// Begin notes that a text begins, whose prompt the drafter has yet to read.
func (d *Backoff) Begin() {
	if d.round > 0 {
		d.length = approach(d.length, float64(d.round))
	}
	d.read, d.again, d.round = false, false, 0
}

// approach returns an average that begins with its first value.
func approach(average, value float64) float64 {
	if average == 0 {
		return value
	}
	return average + worthRate*(value-average)
}

// Due reports whether the drafter is asked in a round in which the others promise gain.
func (d *Backoff) Due(gain float64) bool {
	d.round++
	if d.rounds < firstRounds || d.again || d.worth > gain && d.worth > 0 && d.paysPrompt() {
		d.again = false
		return true
	}
	return d.probe.over(leastWait, mostWait)
}

// paysPrompt reports whether the drafter has read the prompt, or brings more in the rounds that are expected than reading costs.
func (d *Backoff) paysPrompt() bool {
	return d.read || d.worth*(d.length-float64(d.round)) >= d.prompt
}

// Observe learns what asking was worth. What the first round of a text is worth, which reads the prompt, is the cost of that.
func (d *Backoff) Observe(worth float64) {
	if !d.read {
		cost := max(0, -worth)
		d.read, d.again, d.prompt = true, true, approach(d.prompt, cost)
		d.probe.left = max(d.probe.left, int(min(promptRounds*(cost-1), 1e6)))
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
