package engine

import (
	"slices"

	"grove/engine/cost"
	"grove/method"
)

// A planner decides how much of a round's guesses is worth running: as many as give the most tokens a second, by their
// chance of being accepted and the measured time of a step. What a shorter draft leaves over, the next round can
// draft: so it is the round's own rate that counts, not the average one. Nothing is always a choice.
type planner struct {
	eager  bool // every guess is run
	pace   pace
	moe    cost.Mixture
	table  [maxDraft + 2]float64 // seconds of a step, by rows that all want logits
	age    int                   // rounds since the table was made
	idle   int                   // rounds in which nothing was run
	wait   int                   // how many of them there are before something is
	least  float32               // score that no guess below can pay with
	order  []int32               // the round's guesses, best first
	chosen []int32               // places of the guesses to run, parents first
	taken  int                   // guesses of the order that have a row among those of other rounds
	worth  int                   // of these, those that pay
}

// maxDraft bounds the guesses that one step runs.
const maxDraft = 64

// gainNeeded is the share of a plain step's tokens that a draft must promise on top: what is less is within the
// error of the measurement.
const gainNeeded = 0.03

// refreshRounds is how long a table of costs serves: depth and corrections move slowly.
const refreshRounds = 32

// begin prepares a round behind a text of the given depth.
func (p *planner) begin(c *Cost, depth int) {
	if p.age--; p.age < 0 {
		p.age = refreshRounds
		for n := 1; n < len(p.table); n++ {
			p.table[n] = c.Seconds(Shape{Rows: n, Depth: depth, Logits: n, Experts: p.moe.Touched(n)})
		}
	}
	if p.pace.seconds == 0 {
		p.pace.add(1, p.table[1])
	}
	least := p.table[1]
	for n := 2; n <= 16; n++ { // one more row, at its cheapest
		least = min(least, max(0, p.table[n]-p.table[n-1]))
	}
	p.least = float32(p.pace.rate() * least / 2)
	if p.eager {
		p.least = 0
	}
}

// choose picks the guesses to run, and returns them with the tokens that they
// promise on top of what their time is worth. The slice is valid until the next call.
func (p *planner) choose(t *method.Tree) (chosen []int32, gain float64) {
	nodes := t.Nodes()
	p.order, p.chosen = p.order[:0], p.chosen[:0]
	for i := range nodes {
		p.order = append(p.order, int32(i))
	}
	slices.SortFunc(p.order, func(a, b int32) int { // a parent comes before its children: it scores no less
		switch sa, sb := nodes[a].Score, nodes[b].Score; {
		case sa > sb:
			return -1
		case sa < sb:
			return 1
		}
		return int(a - b)
	})
	switch {
	case len(nodes) == 0:
		return nil, 0
	case p.eager || t.Laws() != nil:
		return p.all(nodes)
	}
	best, expected := 0, 0.0
	most := (1 + gainNeeded) / p.table[1]
	for n := 1; n <= min(len(p.order), maxDraft); n++ {
		expected += float64(nodes[p.order[n-1]].Score)
		if rate := (1 + expected) / p.table[n+1]; rate > most {
			best, most = n, rate
			gain = expected - p.pace.rate()*(p.table[n+1]-p.table[1])
		}
	}
	if best == 0 {
		best = p.probe(nodes)
	} else {
		p.idle, p.wait = 0, leastWait
	}
	p.chosen = append(p.chosen, p.order[:best]...)
	slices.Sort(p.chosen)
	return p.chosen, gain
}

// probe lets a few guesses run now and then although they do not seem to pay: a cost that was measured in a bad moment
// is corrected by steps of that size alone. It returns how many.
func (p *planner) probe(nodes []method.Node) int {
	if p.idle++; p.idle < max(leastWait, p.wait) || nodes[p.order[0]].Score < probeScore {
		return 0
	}
	p.idle, p.wait = 0, min(2*max(leastWait, p.wait), mostWait)
	return min(probeGuesses, len(p.order))
}

const (
	probeScore   = 0.3
	probeGuesses = 3
)

// all takes every guess: a proof wants it, or they were drawn, and none may be left out for what it is.
func (p *planner) all(nodes []method.Node) (chosen []int32, gain float64) {
	n := min(len(nodes), maxDraft)
	gain = -p.pace.rate() * (p.table[n+1] - p.table[1])
	for i := range nodes[:n] {
		gain += float64(nodes[i].Score)
		p.chosen, p.order = append(p.chosen, int32(i)), append(p.order, int32(i))
	}
	return p.chosen, gain
}

// pace is a running average of tokens a second.
type pace struct{ tokens, seconds float64 }

// paceRate is what each round leaves of the past.
const paceRate = 0.95

func (p *pace) add(tokens int, seconds float64) {
	p.tokens = p.tokens*paceRate + float64(tokens)
	p.seconds = p.seconds*paceRate + seconds
}

func (p *pace) rate() float64 {
	if p.seconds <= 0 {
		return 0
	}
	return p.tokens / p.seconds
}

// turn decides when a drafter that takes noticeable time is asked: as long as what it promised, its time
// deducted, was more than the others' guesses do, and now and then to see whether that has changed.
type turn struct {
	worth    float64 // tokens a round, averaged
	rounds   int     // that it was asked in
	waiting  int     // rounds until it is asked again although it is not worth it
	interval int
}

const (
	worthRate   = 1.0 / 8
	firstRounds = 4 // in which it is always asked
	leastWait   = 32
	mostWait    = 512
)

// due reports whether the drafter is asked in a round in which the others promise gain.
func (d *turn) due(gain float64) bool {
	if d.rounds < firstRounds || d.worth > gain && d.worth > 0 {
		return true
	}
	d.waiting--
	if d.waiting > 0 {
		return false
	}
	d.interval = min(max(leastWait, 2*d.interval), mostWait)
	d.waiting = d.interval
	return true
}

// judge learns what asking was worth.
func (d *turn) judge(worth float64) {
	d.rounds++
	if d.rounds == 2 {
		d.worth = worth // the first round reads the prompt
	}
	d.worth += worthRate * (worth - d.worth)
	if d.worth > 0 {
		d.interval = 0
	}
}
