package engine

import (
	"slices"
	"time"

	"grove/plan"
)

const (
	// stepLimit bounds a step that others wait for.
	stepLimit = 250 * time.Millisecond
	// prefillStretch is how many times longer prompts make a step that others decode in.
	prefillStretch = 3
	// leastStretch lets prompts go on where the model takes longer than the limit for a single row.
	leastStretch = 1.5
	// Rows of prompts in a step where its cost is not known: beside sequences that decode, and beside others.
	blindBeside, blindShared = 32, 128
	// activeTime is how long a sequence counts as decoding after its last step.
	activeTime = time.Second
)

// prefillRows returns how many rows of prompts a step may have besides what it has.
func (e *Engine) prefillRows(s plan.Shape, decoding int) int {
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
	s.Mean()
	s.Rows, s.Logits = max(1, s.Rows), max(1, s.Logits)
	usual := c.Seconds(e.touching(s))
	limit := max(stepLimit.Seconds(), leastStretch*usual)
	if beside {
		limit = min(limit, prefillStretch*usual)
	}
	least, most := 1, max(1, room) // it grows, if slowly
	for least < most {
		n := (least + most + 1) / 2
		with := s
		with.Rows += n
		if c.Seconds(e.touching(with)) <= limit {
			least = n
		} else {
			most = n - 1
		}
	}
	return min(room, least)
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
func (e *Engine) touching(s plan.Shape) plan.Shape {
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
	s := plan.Shape{Rows: decoding}
	depth := 0
	e.batch.plans = e.batch.plans[:0]
	for _, r := range rounds {
		depth += e.cache.Forest.Len(r.seq)
		if r.spec.plan.Whole() {
			r.chosen = r.chosen[:max(0, min(len(r.chosen), rows))]
			s.Rows += len(r.chosen)
			rows -= len(r.chosen)
		} else {
			r.chosen = nil
			e.batch.plans = append(e.batch.plans, &r.spec.plan)
		}
	}
	s.Depth = depth / len(rounds)
	e.costs.Lock()
	defer e.costs.Unlock()
	c := e.costs.cost
	if c == nil {
		return
	}
	plan.Share(e.batch.plans, rows, float64(decoding), func(more int) float64 {
		s := s
		s.Rows += more
		s.Logits = s.Rows
		return c.Seconds(e.touching(s))
	})
	for _, r := range rounds {
		if !r.spec.plan.Whole() {
			r.chosen = r.spec.plan.Chosen()
		}
	}
}
