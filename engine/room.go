package engine

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"grove/engine/plan"
	"grove/forest"
	"grove/kv"
)

// idleGrace is how long a sequence that nobody calls for keeps its pages from those that rank below it.
const idleGrace = 200 * time.Millisecond

// rank orders sequences: by priority, then by age. The last one gives its pages back first.
func rank(a, b *Sequence) int {
	if a.terms.Priority != b.terms.Priority {
		return cmp.Compare(b.terms.Priority, a.terms.Priority)
	}
	return cmp.Compare(a.arrival, b.arrival)
}

// room sees to a sequence's seat and pages: for all of a prompt, so that one is not begun that cannot be ended. It
// reports whether there are any; if not, the sequence waits.
func (e *Engine) room(s *Sequence) (bool, error) {
	if err := e.sit(s); err != nil {
		return false, nil
	}
	at := e.cache.Forest.Len(s.seq)
	length, err := e.cache.Reuse(s.seq, s.text)
	if err != nil {
		return false, err
	}
	if !s.begun {
		s.reused += max(0, length-max(at, s.known))
	}
	s.known = max(s.known, length)
	ahead := len(s.text)
	if s.round {
		ahead += min(len(s.spec.plan.Order()), plan.MaxDraft)
	}
	err = e.reserve(s.seq, s, ahead, min(ahead, length+e.chunk))
	if errors.Is(err, kv.ErrFull) && e.seats > 1 {
		return false, nil
	}
	return err == nil, err
}

// sit gives a sequence a seat, if it has none; [ErrBusy] where none is free.
func (e *Engine) sit(s *Sequence) error {
	switch {
	case s.seq >= 0:
		return nil
	case e.seats == e.seqs:
		return ErrBusy
	}
	e.seat(1)
	s.seq = e.cache.NewSeq(s.terms.Salt)
	e.seated = append(e.seated, s)
	return nil
}

// reserve takes pages for a trunk to grow: to n tokens, and where windows pass to near. Where there are not as
// many, it takes those of the sequences that s outranks, the last first, or where s is nil of any: they compute their
// texts anew when they go on.
func (e *Engine) reserve(seq forest.Seq, s *Sequence, n, near int) error {
	for {
		err := e.cache.Reserve(seq, n, near)
		if !errors.Is(err, kv.ErrFull) {
			return err
		}
		victim := e.victim(s)
		if victim == nil {
			return err
		}
		if err := e.cache.Truncate(victim.seq, 0); err != nil {
			return err
		}
		victim.lost = true
		e.line.note(func(l *Load) { l.Preempted++ })
	}
}

// victim returns the sequence that gives its pages up for s, nil where there is none.
func (e *Engine) victim(s *Sequence) (last *Sequence) {
	for _, o := range e.seated {
		if o == s || e.cache.Held(o.seq) == 0 || s != nil && rank(s, o) > 0 && !e.line.idle(o) {
			continue
		}
		if last == nil || rank(last, o) < 0 {
			last = o
		}
	}
	return last
}

// note changes the load's figures.
func (l *line) note(change func(*Load)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.load)
}

// idle reports whether a sequence's caller has been away for some time.
func (l *line) idle(s *Sequence) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.done && time.Since(s.served) > idleGrace
}

// unseat gives back what a sequence holds.
func (e *Engine) unseat(s *Sequence) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.line.forget(s)
	if s.seq < 0 {
		e.line.close()
		return nil
	}
	if i := slices.Index(e.seated, s); i >= 0 {
		e.seated = slices.Delete(e.seated, i, i+1)
	}
	if err := e.cache.CloseSeq(s.seq); err != nil {
		return err
	}
	e.seat(-1)
	e.line.close()
	return nil
}

// forget expects nothing of a sequence any longer.
func (l *line) forget(s *Sequence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived(s)
}
