package engine

import (
	"slices"
	"time"

	"grove/method"
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
func (e *Engine) prefillRows(s Shape, decoding int) int {
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
func (e *Engine) touching(s Shape) Shape {
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
	s := Shape{Rows: decoding}
	depth := 0
	for _, r := range rounds {
		depth += e.cache.Forest.Len(r.seq)
		if r.spec.whole() {
			r.chosen = r.chosen[:max(0, min(len(r.chosen), rows))]
			s.Rows += len(r.chosen)
			rows -= len(r.chosen)
		} else {
			r.chosen = nil
		}
	}
	s.Depth = depth / len(rounds)
	e.costs.Lock()
	defer e.costs.Unlock()
	c := e.costs.cost
	if c == nil {
		return
	}
	rate := func(more int, tokens float64) float64 {
		s := s
		s.Rows += more
		s.Logits = s.Rows
		return tokens / c.Seconds(e.touching(s))
	}
	expected := float64(decoding)
	most := (1 + gainNeeded) * rate(0, expected)
	for more := 1; more <= min(rows, maxDraft); more++ {
		best := likeliest(rounds)
		if best == nil {
			break
		}
		expected += float64(best.spec.plan.next(best.spec.tree))
		best.spec.plan.taken++
		if r := rate(more, expected); r > most {
			most = r
			for _, r := range rounds {
				r.spec.plan.worth = r.spec.plan.taken
			}
		}
	}
	for _, r := range rounds {
		if !r.spec.whole() {
			r.chosen = r.spec.plan.cut()
		}
	}
}

// likeliest returns the round whose next guess has the highest score, nil where none has any left.
func likeliest(rounds []*Sequence) (best *Sequence) {
	score := float32(0)
	for _, r := range rounds {
		if r.spec.whole() {
			continue
		}
		if next := r.spec.plan.next(r.spec.tree); next > score {
			best, score = r, next
		}
	}
	return best
}

// whole reports whether all guesses of a round are run.
func (sp *speculation) whole() bool { return sp.plan.eager || sp.tree.Laws() != nil }

// next returns the score of the best guess that is not taken, 0 where there is none.
func (p *planner) next(t *method.Tree) float32 {
	if p.taken == min(len(p.order), maxDraft) {
		return 0
	}
	return t.Nodes()[p.order[p.taken]].Score
}

// cut chooses the guesses that are worth a row among those of others.
func (p *planner) cut() []int32 {
	p.chosen = append(p.chosen[:0], p.order[:p.worth]...)
	slices.Sort(p.chosen)
	p.taken, p.worth = 0, 0
	return p.chosen
}
