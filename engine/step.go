package engine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"grove/engine/plan"
	"grove/forest"
)

// batch is what a step is made of, kept between steps for its room.
type batch struct {
	called []*Sequence // whose callers wait
	parts  []*Sequence // of these, those that may have rows; then those that have
	rounds []*Sequence // of these, those with guesses to share rows among
	plans  []*plan.Planner
	clock  float64 // of the sequence that got prefill rows last
	ctx    owners
}

// owners is the context of a step: it has ended when those of all its sequences have.
type owners struct {
	context.Context
	parts []*Sequence
}

// Err implements [context.Context].
func (o *owners) Err() (err error) {
	for _, s := range o.parts {
		if err = s.ctx.Err(); err == nil {
			return nil
		}
	}
	return err
}

// makeStep makes a step of what the callers in line want, and ends the calls that have got it. Where nothing can
// be done it returns after something has happened. The caller leads.
func (e *Engine) makeStep(lead *Sequence) {
	e.line.gather()
	if events, worked := e.work(); !worked {
		e.line.sleep(lead, events, idleGrace)
	}
}

func (e *Engine) work() (events int, worked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &e.batch
	t.called, events = e.line.callers(t.called[:0], e.seated)
	ended := e.admit()
	if len(t.parts) == 0 {
		return events, ended
	}
	e.plan()
	e.perform(t.parts)
	return events, true
}

// admit ends the calls whose contexts have ended and picks those that have a seat and pages, the first in rank
// first. It reports whether a call has ended.
func (e *Engine) admit() (ended bool) {
	t := &e.batch
	slices.SortFunc(t.called, rank)
	t.parts = t.parts[:0]
	for _, s := range t.called {
		err := s.ctx.Err()
		if err == nil {
			err = e.settle(s)
		}
		fits := false
		if err == nil {
			fits, err = e.room(s)
		}
		switch {
		case err != nil:
			e.line.finish(s, err)
			ended = true
		case fits:
			t.parts = append(t.parts, s)
		}
	}
	return ended
}

// settle commits what a sequence's last round accepted, as far as its tokens were taken: the last of these is
// to be computed again, and tokens that were drawn and not taken are forgotten.
func (e *Engine) settle(s *Sequence) error {
	if s.taken > 0 && !s.lost {
		if err := e.cache.Commit(s.seq, s.path[s.taken-1]); err != nil {
			return err
		}
		if err := e.cache.Drop(s.seq, forest.Trunk); err != nil { // guesses behind it
			return err
		}
	}
	s.path, s.queue, s.taken, s.lost = s.path[:0], s.queue[:0], 0, false
	return nil
}

// plan decides what rows the sequences of the step get: each that goes on from its last token that token's, then
// the guesses that pay, then what is left goes to prompts.
func (e *Engine) plan() {
	t := &e.batch
	decoding := 0
	t.rounds = t.rounds[:0]
	for _, s := range t.parts {
		switch s.rows = 0; {
		case e.behind(s) == 1:
			decoding++
			s.rows = 1
			if s.round {
				t.rounds = append(t.rounds, s)
			}
		case !s.timed: // it begins to read
			s.timed, s.clock = true, max(s.clock, t.clock)
		}
	}
	slices.SortStableFunc(t.parts, e.byClock)
	e.share(t.rounds, decoding)
	shape := plan.StepSize{}
	for _, s := range t.parts[:decoding] {
		if s.round {
			s.rows += len(s.chosen)
		}
		shape.Add(s.rows, e.cache.Forest.Len(s.seq))
		shape.Logits += s.rows
	}
	left := e.prefillRows(shape, decoding, t.parts[decoding:])
	first := true
	for _, s := range t.parts[decoding:] {
		if e.awaits(s) {
			continue
		}
		n := e.behind(s)
		if s.round {
			n-- // the last one goes with its guesses
		}
		s.rows = min(n, left)
		left -= s.rows
		if first {
			t.clock, first = s.clock, false
		}
		s.clock += math.Ldexp(float64(s.rows), -s.terms.Priority)
	}
	t.parts = slices.DeleteFunc(t.parts, func(s *Sequence) bool { return s.rows == 0 })
}

// behind returns how many tokens of a text are not in the cache.
func (e *Engine) behind(s *Sequence) int { return len(s.text) - e.cache.Forest.Len(s.seq) }

// byClock puts sequences that decode first, side by side where they share pages, as attention reads these once for
// neighbours, and then those that read by their clocks: each gets prefill rows
// in proportion to its weight, and a new one is not behind those that have got many.
func (e *Engine) byClock(a, b *Sequence) int {
	readsA, readsB := e.behind(a) > 1, e.behind(b) > 1
	switch {
	case readsA && readsB && a.clock != b.clock:
		return cmp.Compare(a.clock, b.clock)
	case readsA && readsB:
		return byDeadline(a, b)
	case readsA:
		return 1
	case readsB:
		return -1
	}
	return e.cache.Compare(a.seq, b.seq)
}

// byDeadline puts the call first whose context ends first.
func byDeadline(a, b *Sequence) int {
	endA, anyA := a.ctx.Deadline()
	endB, anyB := b.ctx.Deadline()
	switch {
	case anyA && anyB:
		return endA.Compare(endB)
	case anyA:
		return -1
	case anyB:
		return 1
	}
	return 0
}

// awaits reports whether a sequence that reads is about to compute a page that another one of the step computes: it
// takes that over later.
func (e *Engine) awaits(s *Sequence) bool {
	at := e.cache.Forest.Len(s.seq)
	if at%forest.SlotsPerPage != 0 || len(s.text) <= at+forest.SlotsPerPage {
		return false
	}
	end := at + forest.SlotsPerPage
	for _, o := range e.batch.parts {
		if o == s {
			return false // those behind it have no rows yet
		}
		if o.rows > 0 && o.terms.Salt == s.terms.Salt && e.behind(o) > 1 && e.cache.Forest.Len(o.seq) < end && len(o.text) >= end &&
			slices.Equal(o.text[:end], s.text[:end]) {
			return true
		}
	}
	return false
}

// perform runs a step of the sequences' rows and hands out what came of it. Where it fails, each sequence's rows
// are run by themselves, so that a fault is only its own; and then a round's without guesses, which plain
// decoding would not have met.
func (e *Engine) perform(parts []*Sequence) {
	start := time.Now()
	err := e.try(parts)
	if err == nil {
		e.line.step = time.Since(start)
		for _, s := range parts {
			e.deliver(s)
		}
		e.line.count(len(e.exec.Step.Rows()), e.cache.Usage())
		e.exec.Step.Reset()
		return
	}
	if len(parts) > 1 {
		e.line.note(func(l *Load) { l.Failed++ })
	}
	for i, s := range parts {
		switch {
		case s.ctx.Err() != nil:
			e.line.finish(s, s.ctx.Err())
		case len(parts) > 1:
			e.perform(parts[i : i+1])
		case s.round && len(s.chosen) > 0:
			s.chosen = nil
			e.perform(parts)
		default:
			e.line.finish(s, err)
		}
	}
}

// try runs a step. On error nothing of it is left.
func (e *Engine) try(parts []*Sequence) error {
	shape := plan.StepSize{}
	for _, s := range parts {
		depth := e.cache.Forest.Len(s.seq)
		wanted, err := e.place(s)
		if err != nil {
			e.exec.Step.Abort()
			return err
		}
		shape.Add(s.rows, depth)
		shape.Logits += wanted
	}
	shape.Mean()
	e.batch.ctx.parts = parts
	if e.batch.ctx.Context == nil {
		e.batch.ctx.Context = context.Background()
	}
	return e.run(&e.batch.ctx, shape)
}

// place adds a sequence's rows to the step and returns how many of them want logits.
func (e *Engine) place(s *Sequence) (wanted int, err error) {
	s.first = len(e.exec.Step.Rows())
	at := e.cache.Forest.Len(s.seq)
	if s.round && at == len(s.text)-1 {
		err = s.placeRound()
		s.rows = len(e.exec.Step.Rows()) - s.first
		return s.rows, err
	}
	if at+s.rows == len(s.text) {
		wanted = 1
	}
	s.root, err = e.addPath(s.text[at:at+s.rows], forest.Row{Seq: s.seq, Want: forest.Want{Logits: true}}, wanted)
	return wanted, err
}

// deliver gives a sequence what the step computed of it, and ends the call where that is all. The rows of one whose
// context has ended are dropped.
func (e *Engine) deliver(s *Sequence) {
	err, done := s.ctx.Err(), true
	at := e.cache.Forest.Len(s.seq)
	switch {
	case err != nil:
	case s.round && at == len(s.text)-1:
		if err = s.walk(); err == nil {
			s.spec.watch(e.exec, s.first)
		}
	default:
		if done = at+s.rows == len(s.text); done {
			copy(s.logits, e.exec.Result(s.first+s.rows-1).Logits)
		}
		if err = e.cache.Commit(s.seq, s.root); err == nil {
			s.known = max(s.known, at+s.rows)
		}
	}
	if err != nil {
		_ = e.cache.Drop(s.seq, forest.Trunk) // the sequence is open: this cannot fail
		s.path = s.path[:0]
	}
	if err != nil || done {
		s.begun = s.begun || err == nil
		s.timed = false
		e.line.finish(s, err)
	}
}
