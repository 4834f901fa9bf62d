package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"grove/kv"
)

// line is where the callers of sequences wait. There is no goroutine for steps: one of the callers leads, and makes
// steps of what all of them want until it has what it came for; then the next one leads. A caller by itself
// leads at once, so that waiting in line costs it nothing. The lock is held for moments.
type line struct {
	mu       sync.Mutex
	waiting  []*Sequence
	leader   *Sequence // one of them
	asleep   bool      // it waits for something to happen
	events   int       // what happened: calls, and sequences that were closed
	sequence int       // that are open
	arrivals uint64
	due      atomic.Int32  // sequences whose callers are expected back
	step     time.Duration // how long the last step took
	load     Load
}

// Load is what an engine does at a moment, for those who watch it.
type Load struct {
	Open      int      // sequences, those that wait for a seat among them
	Admitted  int      // of these, those that may have rows in steps; at most [Config.Seqs]
	Waiting   int      // of these, whose callers wait for a step
	Pages     kv.Usage // as the last step left them
	Steps     int      // made for sequences so far
	Rows      int      // of all steps
	Failed    int      // steps that were run again for each sequence by itself
	Preempted int      // times that a sequence gave its pages back
}

// Load returns what the engine does. It does not wait for a step.
func (e *Engine) Load() Load {
	l := &e.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load.Open, l.load.Waiting = l.sequence, len(l.waiting)
	return l.load
}

// count adds a step to the load's figures.
func (l *line) count(rows int, u kv.Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load.Steps++
	l.load.Rows += rows
	l.load.Pages = u
}

// open counts a sequence in, [ErrBusy] where there are as many as there may be.
func (l *line) open(most int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sequence >= most {
		return fmt.Errorf("engine: %d sequences: %w", l.sequence, ErrBusy)
	}
	l.sequence++
	return nil
}

// close counts a sequence out.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sequence--
	l.happened()
}

// number returns the next number of arrival.
func (l *line) number() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals++
	return l.arrivals
}

// happened tells a leader that sleeps. The caller holds the lock.
func (l *line) happened() {
	l.events++
	if l.asleep {
		l.asleep = false
		l.leader.signal()
	}
}

func (s *Sequence) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// compute waits until the text's last token is computed, or leads until it is; round tells that guesses are to be
// run behind it.
func (s *Sequence) compute(ctx context.Context, round bool) error {
	l := &s.e.line
	s.round = round
	lead := l.enter(s, ctx)
	defer l.leave(s)
	for {
		if lead {
			s.e.makeStep(s)
		} else {
			l.wait(s)
		}
		var done bool
		if done, lead = l.look(s); done {
			return s.err
		}
	}
}

// enter puts a caller in line, and reports whether it leads.
func (l *line) enter(s *Sequence, ctx context.Context) (lead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.ctx, s.err, s.done = ctx, nil, false
	l.arrived(s)
	if !s.served.IsZero() {
		s.away += (time.Since(s.served) - s.away) / 4
	}
	l.waiting = append(l.waiting, s)
	if l.leader == nil {
		l.leader = s
	}
	if l.leader != s {
		l.happened()
	}
	return l.leader == s
}

// arrived notes that a caller is not expected any longer. The caller holds the lock.
func (l *line) arrived(s *Sequence) {
	if s.due {
		s.due = false
		l.due.Add(-1)
	}
}

// leave takes a caller out of the line, which is there only where a panic passes, and passes the lead on.
func (l *line) leave(s *Sequence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(s)
	if l.leader != s {
		return
	}
	l.leader, l.asleep = nil, false
	if len(l.waiting) > 0 {
		l.leader = l.waiting[0]
		l.leader.signal()
	}
}

func (l *line) remove(s *Sequence) {
	if i := slices.Index(l.waiting, s); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}

// wait returns when a caller that does not lead is to look. One whose context has ended tells the leader, and
// waits: its rows may be in a step.
func (l *line) wait(s *Sequence) {
	select {
	case <-s.wake:
	case <-s.ctx.Done():
		l.mu.Lock()
		if !s.done && l.leader != s {
			l.happened()
		}
		l.mu.Unlock()
		<-s.wake
	}
}

func (l *line) look(s *Sequence) (done, lead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.done, l.leader == s
}

// finish ends a call.
func (l *line) finish(s *Sequence, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.err, s.done, s.served = err, true, time.Now()
	l.remove(s)
	if err == nil && s.away < l.step/patience {
		s.due = true
		l.due.Add(1)
	}
	if l.leader != s {
		s.signal()
	}
}

// patience is the share of a step's time that the next one is put off for callers that the last one served: they
// come back for the next token, and a step for all of them takes little longer than one for some. Who was
// longer away lately is not waited for.
const patience = 4

// gather waits for the callers that are due.
func (l *line) gather() {
	if l.due.Load() == 0 {
		return
	}
	const spin = 50 * time.Microsecond
	for start := time.Now(); l.due.Load() > 0; {
		switch waited := time.Since(start); {
		case waited > l.step/patience:
			return
		case waited < spin:
			runtime.Gosched()
		default:
			time.Sleep(spin)
		}
	}
}

// callers appends those who wait to dst, and expects nobody any longer. It returns the number of events.
func (l *line) callers(dst, seated []*Sequence) ([]*Sequence, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range seated {
		l.arrived(s)
	}
	return append(dst, l.waiting...), l.events
}

// sleep lets the leader wait until something happens, its context ends, or some time has passed.
func (l *line) sleep(s *Sequence, events int, most time.Duration) {
	l.mu.Lock()
	if l.events != events {
		l.mu.Unlock()
		return
	}
	l.asleep = true
	l.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-s.ctx.Done():
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asleep = false
}
