package engine

import (
	"slices"
	"sort"
	"time"

	"grove/engine/plan"
)

const (
	// stepLimit bounds a step that others wait for.
	stepLimit = 250 * time.Millisecond
	// prefillStretch is how many times longer prompts are meant to make a step that others decode in: it is three
	// times at most, and predictions err.
	prefillStretch = 2.5
	// leastStretch lets prompts go on where the model takes longer than the limit for a single row.
	leastStretch = 1.5
	// Rows of prompts in a step where its cost is not known: beside sequences that decode, and beside others.
	blindBeside, blindShared = 32, 128
	// activeTime is how long a sequence counts as decoding after its last step.
	activeTime = time.Second
)

// prefillRows returns how many rows of prompts a step may have besides what it has, if the readers take them in turn.
func (e *Engine) prefillRows(s plan.StepSize, decoding int, readers []*Sequence) int {
	room := max(0, e.chunk-s.Rows)
	beside := decoding > 0 || e.line.anyActive(e.seated, e.batch.called)
	if !beside && len(e.batch.called) == 1 {
		return room
	}
	e.costs.Lock()
	defer e.costs.Unlock()
	c := e.costs.cost
	switch {
	case c == nil && beside:
		return min(room, blindBeside)
	case c == nil:
		return min(room, blindShared)
	}
	seconds := func(more int) float64 { return c.Seconds(e.touching(e.withPrompts(s, readers, more))) }
	limit := limitOf(seconds(0))
	if beside {
		limit = min(limit, prefillStretch*seconds(0))
	}
	return min(room, max(1, within(limit, room, seconds))) // prompts go on, if slowly
}

// withPrompts returns the shape of a step with more rows, which the readers take in turn: deep in a prompt a row costs
// several times what it costs at the beginning.
func (e *Engine) withPrompts(s plan.StepSize, readers []*Sequence, more int) plan.StepSize {
	for _, r := range readers {
		n := min(more, e.behind(r))
		s.Add(n, e.cache.Forest.Len(r.seq))
		more -= n
	}
	s.Mean()
	s.Rows, s.Logits = max(1, s.Rows+more), max(1, s.Logits)
	return s
}

// limitOf returns how long a step may take that others wait for, if it takes usual without what is added to it.
func limitOf(usual float64) float64 { return max(stepLimit.Seconds(), leastStretch*usual) }

// within returns the largest number up to most for which a function that rises stays within a limit, or 0.
func within(limit float64, most int, seconds func(n int) float64) int {
	return sort.Search(max(0, most), func(n int) bool { return seconds(n+1) > limit })
}

// anyActive reports whether a sequence that is none of the callers decodes: its caller will be back, or has just come.
func (l *line) anyActive(seated, called []*Sequence) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range seated {
		if s.begun && (!s.done || time.Since(s.served) < activeTime) && !slices.Contains(called, s) {
			return true
		}
	}
	return false
}

// touching adds the experts that a step's rows are likely to touch.
func (e *Engine) touching(s plan.StepSize) plan.StepSize {
	s.Experts = e.moe.Touched(s.Rows)
	return s
}

// share lets the guesses of all rounds of a step compete for its rows, the likeliest first, for as long as a further
// row promises more tokens a second. decoding counts the step's other rows. By itself a round runs what it
// chose; a tree whose guesses were drawn, or are all wanted, is run as it is, as far as there are rows.
func (e *Engine) share(rounds []*Sequence, decoding int) {
	if len(rounds) == 0 || len(e.batch.parts) == 1 {
		return
	}
	rows := e.chunk - decoding
	if len(e.batch.parts) > decoding {
		rows -= max(1, e.chunk/4) // for prompts
	}
	s := plan.StepSize{Rows: decoding}
	for _, r := range rounds {
		s.Depth += e.cache.Forest.Len(r.seq) / len(rounds)
	}
	e.costs.Lock()
	defer e.costs.Unlock()
	seconds := func(more int) float64 {
		s := s
		s.Rows += more
		s.Logits = s.Rows
		return e.costs.cost.Seconds(e.touching(s)) // it is known where sequences draft
	}
	rows = within(limitOf(seconds(0)), rows, seconds)
	e.batch.plans = e.batch.plans[:0]
	for _, r := range rounds {
		if r.spec.plan.Whole() {
			r.chosen = r.chosen[:min(len(r.chosen), rows)]
			s.Rows += len(r.chosen)
			rows -= len(r.chosen)
		} else {
			e.batch.plans = append(e.batch.plans, &r.spec.plan)
		}
	}
	plan.Share(e.batch.plans, rows, float64(decoding), seconds)
	for _, r := range rounds {
		if !r.spec.plan.Whole() {
			r.chosen = r.spec.plan.Chosen()
		}
	}
}
