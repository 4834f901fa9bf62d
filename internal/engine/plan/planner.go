package plan

import (
	"slices"

	"grove/method"
)

// A Planner decides how much of a round's drafts is worth running: as many as give the most tokens a second, by their
// chance of being accepted and the measured time of a step. What a shorter draft leaves over, the next round can
// draft: so it is the round's own rate that counts, not the average one. Nothing is always a choice.
type Planner struct {
	Eager      bool       // every draft is run
	Throughput Throughput // of the sequence
	Experts    Mixture
	MaxDrafts  int     // drafts that are run at most; 0: MaxDraft
	Spent      float64 // seconds that drafting has taken in the round so far
	Layers     int     // of the model; 0: rows that drafters have run are taken for new ones

	tree   *method.Tree
	table  [MaxDraft + 2]float64 // seconds of a step, by rows that all want logits
	layers [MaxDraft + 2]float64 // the part of it that the layers take
	age    int                   // rounds since the table was made
	idle   int                   // rounds in which nothing was run
	wait   int                   // how many of them there are before something is
	least  float32               // score that no draft below can pay with
	order  []int32               // the round's drafts, best first
	chosen []int32               // places of the drafts to run, parents first
	taken  int                   // drafts of the order that have a row among those of other rounds
	worth  int                   // of these, those that pay

	extraRoom int  // extra rows of the step at most
	noExtra   bool // none runs
}

// MaxDraft bounds the drafts that one step runs.
const MaxDraft = 64

// gainNeeded is the share of a plain step's tokens that a draft must promise on top: what is less is within the
// error of the measurement.
const gainNeeded = 0.03

// refreshRounds is how long a table of costs serves: depth and corrections move slowly.
const refreshRounds = 32

// Begin prepares a round behind a text of the given depth.
func (p *Planner) Begin(c *Cost, depth int) {
	if p.age--; p.age < 0 {
		p.age = refreshRounds
		for n := 1; n < len(p.table); n++ {
			s := StepSize{Rows: n, Depth: depth, Logits: n, Experts: p.Experts.Touched(n)}
			p.table[n] = c.Seconds(s)
			s.Logits = 0
			p.layers[n] = c.Seconds(s)
		}
	}
	if p.Throughput.seconds == 0 {
		p.Throughput.Add(1, p.table[1])
	}
	least := p.table[1]
	for n := 2; n <= 16; n++ { // one more row, at its cheapest
		least = min(least, max(0, p.table[n]-p.table[n-1]))
	}
	p.least = float32(p.Throughput.Rate() * least / 2)
	if p.Eager {
		p.least = 0
	}
}

// Choose picks the drafts of a tree to run, which [Planner.Chosen] then has, and returns the tokens that they
// promise on top of what their time is worth.
func (p *Planner) Choose(t *method.Tree) (gain float64) {
	nodes := t.Nodes()
	p.tree, p.extraRoom, p.noExtra = t, MaxDraft, false
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
		r := p.resume(t)
		return p.Throughput.Rate() * (p.table[1] - r.seconds(1)) // of extra rows
	case p.Eager || t.RunsAll():
		return p.all(nodes)
	}
	best, expected, r := 0, 0.0, p.resume(t)
	most := (1 + gainNeeded) / (p.Spent + r.seconds(1))
	gain = p.Throughput.Rate() * (p.table[1] - r.seconds(1)) // of the rows that are resumed, the text's last one is
	for n := 1; n <= min(len(p.order), p.most()); n++ {
		expected += float64(nodes[p.order[n-1]].Score)
		r.add(p.order[n-1])
		if rate := (1 + expected) / (p.Spent + r.seconds(n+1)); rate > most {
			best, most = n, rate
			gain = expected - p.Throughput.Rate()*(r.seconds(n+1)-p.table[1])
		}
	}
	if best == 0 {
		best = p.trial(nodes)
	} else {
		p.idle, p.wait = 0, leastWait
	}
	p.chosen = append(p.chosen, p.order[:best]...)
	slices.Sort(p.chosen)
	return gain
}

// most returns how many drafts are run at most.
func (p *Planner) most() int {
	if p.MaxDrafts == 0 {
		return MaxDraft
	}
	return min(p.MaxDrafts, MaxDraft)
}

// MaxRun returns how many of the drafts may run.
func (p *Planner) MaxRun() int { return min(len(p.order), p.most()) }

// Reserve makes room for choosing among so many drafts.
func (p *Planner) Reserve(drafts int) {
	p.order, p.chosen = make([]int32, 0, drafts), make([]int32, 0, drafts)
}

// Bytes returns the room for choosing.
func (p *Planner) Bytes() int { return 4 * (cap(p.order) + cap(p.chosen)) }

// Limit keeps the first n of the chosen drafts, and returns how many it has taken away; with none no extra rows are run either.
func (p *Planner) Limit(n int) (fewer int) {
	fewer = max(0, len(p.chosen)-max(0, n))
	p.chosen = p.chosen[:len(p.chosen)-fewer]
	if n <= 0 && p.ExtraRows() > 0 {
		p.noExtra, fewer = true, fewer+1
	}
	return fewer
}

// Least returns the score that no draft below can pay with in the round that was begun.
func (p *Planner) Least() float32 { return p.least }

// StepSeconds returns the seconds of a step of the sequence's rows alone, all of which want logits.
func (p *Planner) StepSeconds(rows int) float64 { return p.table[rows] }

// Order returns the places of the drafts in the tree, best first; it is valid until the next Choose.
func (p *Planner) Order() []int32 { return p.order }

// RunsAll reports whether all drafts of the round are run, whether they pay or not: a proof wants it, or the tree does.
func (p *Planner) RunsAll() bool { return p.Eager || p.tree.RunsAll() }

// trial lets a few drafts run now and then although they do not seem to pay: a cost that was measured in a bad moment
// is corrected by steps of that size alone. It returns how many.
func (p *Planner) trial(nodes []method.Node) int {
	if p.idle++; p.idle < max(leastWait, p.wait) || nodes[p.order[0]].Score < trialScore {
		return 0
	}
	p.idle, p.wait = 0, min(2*max(leastWait, p.wait), mostWait)
	return min(trialDrafts, len(p.order), p.most())
}

const (
	trialScore  = 0.3
	trialDrafts = 3
)

// all takes every draft, or as many as are run: a proof wants it, or they were drawn, and none may be left out for what it is. Of drafts
// that were not drawn the least likely ones are left out.
func (p *Planner) all(nodes []method.Node) (gain float64) {
	n := min(len(nodes), p.most())
	if p.tree.RunsAll() {
		for i := range n {
			p.order[i] = int32(i)
		}
	}
	p.order = p.order[:n]
	p.chosen = append(p.chosen, p.order...)
	slices.Sort(p.chosen)
	r := p.resume(p.tree)
	for _, c := range p.chosen {
		gain += float64(nodes[c].Score)
		r.add(c)
	}
	return gain - p.Throughput.Rate()*(r.seconds(n+1)-p.table[1])
}

// Throughput is a running average of tokens a second.
type Throughput struct{ tokens, seconds float64 }

// throughputRate is what each round leaves of the past.
const throughputRate = 0.95

// Add adds a round.
func (p *Throughput) Add(tokens int, seconds float64) {
	p.tokens = p.tokens*throughputRate + float64(tokens)
	p.seconds = p.seconds*throughputRate + seconds
}

// Rate returns the average, 0 before the first round.
func (p *Throughput) Rate() float64 {
	if p.seconds <= 0 {
		return 0
	}
	return p.tokens / p.seconds
}

// Mixture predicts how many experts rows touch.
type Mixture struct{ Layers, Experts, ExpertsPerToken int }

// Touched is the number of different experts that rows choose in all layers, if each chooses by itself.
func (m Mixture) Touched(rows int) int {
	if m.Experts == 0 {
		return 0
	}
	missed := 1.0
	for range rows {
		missed *= 1 - float64(m.ExpertsPerToken)/float64(m.Experts)
	}
	return int(float64(m.Layers*m.Experts)*(1-missed) + 0.5)
}
