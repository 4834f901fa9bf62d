package engine

import (
	"cmp"
	"math"
	"slices"
	"time"

	"grove/engine/plan"
	"grove/forest"
)

const (
	// Rows of prompts in a step where its cost is not known: beside sequences that decode, and beside others.
	blindBeside, blindShared = 32, 128
	// activeTime is how long a sequence counts as decoding after its last step.
	activeTime = time.Second
)

// schedule decides how many rows each part of the step gets: first those that a job must have, then the drafts that
// pay, then what is left goes to prompts.
func (e *Engine) schedule(st *step) {
	if i := slices.IndexFunc(st.parts, func(t *trunk) bool { return t.need.alone }); i >= 0 {
		st.parts = append(st.parts[:0], st.parts[i])
		return
	}
	tokens, fixed := e.scheduleFixed(st)
	e.share(st, tokens, fixed)
	size := plan.StepSize{}
	readers := 0
	for _, t := range st.parts {
		if t.need.drafts != nil {
			t.rows += len(t.need.drafts.Chosen())
		}
		if t.rows == 0 {
			readers++
			continue
		}
		size.Add(t.rows, t.length())
		size.Logits += t.rows
	}
	e.schedulePrompts(st, size, tokens, st.parts[len(st.parts)-readers:])
	st.parts = slices.DeleteFunc(st.parts, func(t *trunk) bool { return t.rows == 0 })
}

// scheduleFixed gives jobs the rows that they must have, as far as the step has room, and puts the parts in order. It
// returns how many of these rows give a token, and how many there are.
func (e *Engine) scheduleFixed(st *step) (tokens, rows int) {
	st.rounds = st.rounds[:0]
	waits := false
	for _, t := range st.parts {
		t.rows = t.need.rows
		if rows+t.rows > e.chunk {
			t.rows, t.need, t.waits, waits = 0, need{}, true, true // for the next step
			continue
		}
		rows += t.rows
		if t.need.decodes {
			tokens++
		}
		if t.need.drafts != nil {
			st.rounds = append(st.rounds, t)
		}
		if t.need.prompt > 0 && !t.timed { // it begins to read
			t.timed, t.clock = true, max(t.clock, st.clock)
		}
	}
	if waits {
		st.parts = slices.DeleteFunc(st.parts, func(t *trunk) bool { return t.rows == 0 && t.need.prompt == 0 })
	}
	slices.SortStableFunc(st.parts, e.byClock)
	return tokens, rows
}

// schedulePrompts gives the trunks that read prompts their rows, the first by its clock first.
func (e *Engine) schedulePrompts(st *step, size plan.StepSize, tokens int, readers []*trunk) {
	left := e.prefillRows(size, tokens, readers)
	first := true
	for _, t := range readers {
		if e.awaits(t) {
			continue
		}
		t.rows = min(t.need.prompt, left)
		left -= t.rows
		if first {
			st.clock, first = t.clock, false
		}
		t.clock += float64(t.rows) * math.Exp2(-float64(t.priority())/prioritySteps)
	}
}

// byClock puts trunks with rows that they must have first, side by side where they share pages, as attention reads
// these once for neighbours, and then those that read prompts by their clocks: each gets rows in proportion to its
// weight, and a new one is not behind those that have got many.
func (e *Engine) byClock(a, b *trunk) int {
	readsA, readsB := a.need.prompt > 0, b.need.prompt > 0
	switch {
	case readsA && readsB && a.clock != b.clock:
		return cmp.Compare(a.clock, b.clock)
	case readsA && readsB:
		return a.caller.CompareDeadline(&b.caller)
	case readsA:
		return 1
	case readsB:
		return -1
	}
	return e.cache.Compare(a.seq, b.seq)
}

// awaits reports whether a trunk that reads is about to compute a page, or with recurrent layers the pages up to a snapshot, that
// another one of the step computes: it takes them over later.
func (e *Engine) awaits(t *trunk) bool {
	at, page := t.length(), max(forest.SlotsPerPage, e.cache.Cadence())
	end := at + page
	if at%page != 0 || len(t.need.text) <= end {
		return false
	}
	for _, o := range e.step.parts {
		if o == t {
			return false // those behind it have no rows yet
		}
		if o.rows > 0 && o.terms.Salt == t.terms.Salt && o.sourceName() == t.sourceName() && o.terms.adapted() == t.terms.adapted() && o.need.prompt > 0 && o.length() < end &&
			len(o.need.text) >= end && slices.Equal(o.need.text[:end], t.need.text[:end]) {
			return true
		}
	}
	return false
}

// prefillRows returns how many rows of prompts a step may have besides what it has, if the readers take them in turn.
func (e *Engine) prefillRows(s plan.StepSize, decoding int, readers []*trunk) int {
	room := max(0, e.chunk-s.Rows)
	beside := decoding > 0 || e.queue.Active(e.admitted, e.step.called, activeTime, func(t *trunk) bool { return t.begun })
	if !beside && len(e.step.called) == 1 {
		return room
	}
	rows := blindShared
	if beside {
		rows = blindBeside
	}
	e.costs.With(func(c *plan.Cost) {
		if c == nil {
			return
		}
		seconds := func(more int) float64 { return c.Seconds(e.touching(withPrompts(s, readers, more))) }
		rows = max(1, plan.Within(plan.Limit(seconds(0), beside), room, seconds)) // prompts go on, if slowly
	})
	return min(room, rows)
}

// withPrompts returns the size of a step with more rows, which the readers take in turn: deep in a prompt a row costs
// several times what it costs at the beginning.
func withPrompts(s plan.StepSize, readers []*trunk, more int) plan.StepSize {
	for _, t := range readers {
		n := min(more, t.need.prompt)
		s.Add(n, t.length())
		more -= n
	}
	s.Mean()
	s.Rows, s.Logits = max(1, s.Rows+more), max(1, s.Logits)
	return s
}

// touching adds the experts that a step's rows are likely to touch.
func (e *Engine) touching(s plan.StepSize) plan.StepSize {
	s.Experts = e.moe.Touched(s.Rows)
	return s
}

// share lets the drafts of all rounds of a step compete for its rows, the likeliest first, for as long as a further
// row promises more tokens a second. By itself a round runs what it
// chose; a tree whose drafts were drawn, or are all wanted, is run as it is, as far as there are rows.
func (e *Engine) share(st *step, tokens, fixed int) {
	if len(st.rounds) == 0 || len(st.parts) == 1 {
		return
	}
	rows := e.chunk - fixed
	if slices.ContainsFunc(st.parts, func(t *trunk) bool { return t.need.prompt > 0 }) {
		rows -= max(1, e.chunk/4) // for prompts
	}
	s := plan.StepSize{Rows: fixed}
	for _, t := range st.rounds {
		s.Depth += t.length() / len(st.rounds)
	}
	e.costs.With(func(c *plan.Cost) { // it is known where sequences draft
		seconds := func(more int) float64 {
			s := s
			s.Rows += more
			s.Logits = s.Rows
			return c.Seconds(e.touching(s))
		}
		rows = plan.Within(plan.Limit(seconds(0), false), rows, seconds)
		st.plans = st.plans[:0]
		for _, t := range st.rounds {
			if p := t.need.drafts; p.Whole() {
				p.Limit(rows)
				s.Rows += len(p.Chosen())
				rows -= len(p.Chosen())
			} else {
				st.plans = append(st.plans, p)
			}
		}
		plan.Share(st.plans, rows, float64(tokens), seconds)
	})
}
