package step

import (
	"cmp"
	"math"
	"slices"
	"time"

	"grove/internal/engine/plan"
	"grove/internal/forest"
)

const (
	// Rows of prompts in a step where its cost is not known: beside sequences that decode, and beside others.
	blindBeside, blindShared = 32, 128
	// activeTime is how long a sequence counts as decoding after its last step.
	activeTime = time.Second
)

// schedule decides how many rows each part of the step gets: first those that a job must have, then the drafts that
// pay, then what is left goes to prompts.
func (m *Maker) schedule(st *Step) {
	if i := slices.IndexFunc(st.parts, func(t *Trunk) bool { return t.need.Alone }); i >= 0 {
		st.parts = append(st.parts[:0], st.parts[i])
		return
	}
	tokens, fixed := m.scheduleFixed(st)
	m.share(st, tokens, fixed)
	left := m.Chunk - fixed
	for _, t := range st.rounds {
		left -= len(t.need.Drafts.Chosen())
	}
	size := plan.StepSize{}
	readers := 0
	for _, t := range st.parts {
		if t.need.Drafts != nil {
			t.need.Drafts.LimitExtra(max(0, left))
			extra := t.need.Drafts.ExtraRows()
			left -= extra
			t.Rows += len(t.need.Drafts.Chosen()) + extra
		}
		if t.Rows == 0 {
			readers++
			continue
		}
		size.Add(t.Rows, t.Len())
		size.Logits += t.Rows
	}
	m.schedulePrompts(st, size, tokens, st.parts[len(st.parts)-readers:])
	st.parts = slices.DeleteFunc(st.parts, func(t *Trunk) bool { return t.Rows == 0 })
}

// scheduleFixed gives jobs the rows that they must have, as far as the step has room, and puts the parts in order. It
// returns how many of these rows give a token, and how many there are.
func (m *Maker) scheduleFixed(st *Step) (tokens, rows int) {
	st.rounds = st.rounds[:0]
	waits := false
	for _, t := range st.parts {
		t.Rows = t.need.Rows
		if rows+t.Rows > m.Chunk {
			t.Rows, t.need, t.waits, waits = 0, Need{}, true, true // for the next step
			continue
		}
		rows += t.Rows
		if t.need.Decodes {
			tokens++
		}
		if t.need.Drafts != nil {
			st.rounds = append(st.rounds, t)
		}
		if t.need.Prompt > 0 && !t.timed { // it begins to read
			t.timed, t.clock = true, max(t.clock, st.clock)
		}
	}
	if waits {
		st.parts = slices.DeleteFunc(st.parts, func(t *Trunk) bool { return t.Rows == 0 && t.need.Prompt == 0 })
	}
	slices.SortStableFunc(st.parts, m.byClock)
	return tokens, rows
}

// schedulePrompts gives the trunks that read prompts their rows, the first by its clock first.
func (m *Maker) schedulePrompts(st *Step, size plan.StepSize, tokens int, readers []*Trunk) {
	left := m.prefillRows(size, tokens, readers)
	first := true
	for _, t := range readers {
		if m.awaits(t) {
			continue
		}
		t.Rows = min(t.need.Prompt, left)
		left -= t.Rows
		if first {
			st.clock, first = t.clock, false
		}
		t.clock += float64(t.Rows) * math.Exp2(-float64(t.priority())/prioritySteps)
	}
}

// byClock puts trunks with rows that they must have first, side by side where they share pages, as attention reads
// these once for neighbours, and then those that read prompts by their clocks: each gets rows in proportion to its
// weight, and a new one is not behind those that have got many.
func (m *Maker) byClock(a, b *Trunk) int {
	readsA, readsB := a.need.Prompt > 0, b.need.Prompt > 0
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
	return m.Cache.Compare(a.Seq, b.Seq)
}

// awaits reports whether a trunk that reads is about to compute a page, or with recurrent layers the pages up to a snapshot, that
// another one of the step computes: it takes them over later.
func (m *Maker) awaits(t *Trunk) bool {
	at, page := t.Len(), max(forest.SlotsPerPage, m.Cache.Cadence())
	end := at + page
	if at%page != 0 || len(t.need.Text) <= end {
		return false
	}
	for _, o := range m.step.parts {
		if o == t {
			return false // those behind it have no rows yet
		}
		if o.Rows > 0 && o.Terms.Salt == t.Terms.Salt && o.sourceName() == t.sourceName() && o.Terms.Adapted() == t.Terms.Adapted() && o.need.Prompt > 0 && o.Len() < end &&
			len(o.need.Text) >= end && slices.Equal(o.need.Text[:end], t.need.Text[:end]) {
			return true
		}
	}
	return false
}

// prefillRows returns how many rows of prompts a step may have besides what it has, if the readers take them in turn.
func (m *Maker) prefillRows(s plan.StepSize, decoding int, readers []*Trunk) int {
	room := max(0, m.Chunk-s.Rows)
	beside := decoding > 0 || m.queue.Active(m.admitted, m.step.called, activeTime, func(t *Trunk) bool { return t.Begun })
	if !beside && len(m.step.called) == 1 {
		return room
	}
	rows := blindShared
	if beside {
		rows = blindBeside
	}
	m.Costs.With(func(c *plan.Cost) {
		if c == nil {
			return
		}
		seconds := func(more int) float64 { return c.Seconds(m.touching(withPrompts(s, readers, more))) }
		rows = max(1, plan.Within(plan.Limit(seconds(0), beside), room, seconds)) // prompts go on, if slowly
	})
	return min(room, rows)
}

// withPrompts returns the size of a step with more rows, which the readers take in turn: deep in a prompt a row costs
// several times what it costs at the beginning.
func withPrompts(s plan.StepSize, readers []*Trunk, more int) plan.StepSize {
	for _, t := range readers {
		n := min(more, t.need.Prompt)
		s.Add(n, t.Len())
		more -= n
	}
	s.Mean()
	s.Rows, s.Logits = max(1, s.Rows+more), max(1, s.Logits)
	return s
}

// touching adds the experts that a step's rows are likely to touch.
func (m *Maker) touching(s plan.StepSize) plan.StepSize {
	s.Experts = m.Experts.Touched(s.Rows)
	return s
}

// share lets the drafts of all rounds of a step compete for its rows, the likeliest first, for as long as a further
// row promises more tokens a second. By itself a round runs what it
// chose; a tree whose drafts were drawn, or are all wanted, is run as it is, as far as there are rows.
func (m *Maker) share(st *Step, tokens, fixed int) {
	if len(st.rounds) == 0 || len(st.parts) == 1 {
		return
	}
	rows := m.Chunk - fixed
	if slices.ContainsFunc(st.parts, func(t *Trunk) bool { return t.need.Prompt > 0 }) {
		rows -= max(1, m.Chunk/4) // for prompts
	}
	s := plan.StepSize{Rows: fixed}
	for _, t := range st.rounds {
		s.Depth += t.Len() / len(st.rounds)
	}
	m.Costs.With(func(c *plan.Cost) { // it is known where sequences draft
		seconds := func(more int) float64 {
			s := s
			s.Rows += more
			s.Logits = s.Rows
			return c.Seconds(m.touching(s))
		}
		rows = plan.Within(plan.Limit(seconds(0), false), rows, seconds)
		st.plans = st.plans[:0]
		for _, t := range st.rounds {
			if p := t.need.Drafts; p.RunsAll() {
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
