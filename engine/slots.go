package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grove/adapters"
	"grove/engine/queue"
	"grove/forest"
	"grove/kv"
)

// How long a sequence that nobody calls for keeps its pages from those that rank below it, and its slot from those that wait.
const (
	idleGrace = 200 * time.Millisecond
	slotGrace = 500 * time.Millisecond
)

// Terms are what a sequence may ask of the scheduler.
type Terms struct {
	// Priority decides which sequence gets a slot first, and which loses its pages where they run out, the lowest first,
	// and weighs the share of prefill rows, twice for each [prioritySteps] up; usually 0, and within [LeastPriority] and
	// [MostPriority]. Where younger sequences of higher priority keep coming, the one that waits longest is now and then
	// as urgent as any, until it is closed: none starves.
	Priority int
	// Salt keeps a sequence apart: it shares pages, and what drafting learns, with sequences of the same salt only.
	Salt string
	// Private keeps a sequence apart from all others, whatever its salt.
	Private bool
	// Adapters add to the products of the sequence's rows. Sequences share pages only where each row has the same adapters; nil: none.
	Adapters *adapters.Set

	adaptFrom int // the index from which the adapters work
}

// The range of [Terms.Priority].
const (
	LeastPriority = -10
	MostPriority  = 10
)

const (
	// prioritySteps is how many steps of priority double the share of prefill rows.
	prioritySteps = 4
	// mostPassed is how many sequences may get slots before an older one that waits, until the oldest one is owed its turn.
	mostPassed = 8
)

// trunk is a sequence of the cache as queue and scheduler see it: its caller, its slot and its pages. All work that runs
// rows has one. The fields are guarded by Engine.mu; the caller has a lock of its own.
type trunk struct {
	caller  queue.Caller
	job     job // that the caller waits for
	e       *Engine
	seq     forest.Seq // -1: it has no slot
	terms   Terms
	arrival uint64
	source  *source // of an encoder-decoder's text; nil: none
	adapter int     // the number of its set of adapters while it has a slot; 0: none

	pinned bool    // its pages are never taken
	bursts bool    // its caller is a drafter, who calls several times in short order
	lost   bool    // its pages were taken: its text is computed anew
	away   bool    // its slot was taken while nobody called for it: it does not count as open
	begun  bool    // it decodes: its prompt is computed
	waits  bool    // the last step was made without it, for want of a slot, pages or rows
	owed   bool    // others have passed it: it is as urgent as any
	clock  float64 // prefill rows, weighed by priority
	timed  bool    // the clock goes with the engine's

	need  need // of the step that is made
	rows  int  // that it has of the step
	first int  // of them
}

// Caller implements [queue.Member].
func (t *trunk) Caller() *queue.Caller { return &t.caller }

// do waits until a job of the trunk is done, or makes steps until it is. One job of a trunk is done at a time.
func (t *trunk) do(ctx context.Context, j job) error {
	t.job = j
	err := t.e.queue.Do(ctx, t, t.e.makeStep)
	if err == queue.ErrCancelled {
		err = fmt.Errorf("engine: %w", err)
	}
	return err
}

// open makes a trunk that waits for a slot, for so many of all kinds at most.
func (e *Engine) open(t *trunk, most int) error {
	if err := e.Closed(); err != nil {
		return err
	}
	t.e, t.seq = e, -1
	t.caller.Init(t.bursts)
	if e.count(t, most) || e.lend() && e.count(t, most) {
		return nil
	}
	return fmt.Errorf("engine: %d sequences: %w", most, ErrBusy)
}

// count counts a trunk that is opened, where fewer than most are.
func (e *Engine) count(t *trunk, most int) (fits bool) {
	e.load.Note(func(l *Load) {
		if fits = l.Open < most; fits {
			l.Open++
			l.Opened++
			t.arrival = l.Opened
		}
	})
	return fits
}

// openNow makes a trunk that has a slot and never loses its pages: [ErrBusy] where no slot is free.
func (e *Engine) openNow(t *trunk) error {
	if err := e.open(t, e.most); err != nil {
		return err
	}
	t.pinned = true
	e.mu.Lock()
	err := e.admit(t)
	e.mu.Unlock()
	if err != nil {
		return errors.Join(err, t.close())
	}
	return nil
}

// close gives back what a trunk holds.
func (t *trunk) close() error {
	e := t.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.seq >= 0 {
		if err := e.release(t); err != nil {
			return err
		}
	}
	if !t.away {
		e.load.Note(func(l *Load) { l.Open-- })
	}
	e.queue.Forget(t)
	return nil
}

// release takes the slot and the pages of a trunk that has a slot. The caller holds the engine's lock.
func (e *Engine) release(t *trunk) error {
	e.admitted = slices.DeleteFunc(e.admitted, func(o *trunk) bool { return o == t })
	if err := e.cache.CloseSeq(t.seq); err != nil {
		return err
	}
	t.seq = -1
	e.unhold(t)
	e.noteSlots()
	return nil
}

// vacate takes the slot of a trunk whose caller has been away for a while, such as a conversation between two turns, and
// reports whether there was one: when it goes on, it waits for a slot and computes anew what the cache has lost.
func (e *Engine) vacate() bool {
	i := slices.IndexFunc(e.admitted, func(o *trunk) bool { return !o.pinned && e.queue.Idle(o, slotGrace) })
	if i < 0 {
		return false
	}
	o := e.admitted[i]
	o.lost, o.owed, o.away = true, false, true
	e.load.Note(func(l *Load) { l.Preempted, l.Open = l.Preempted+1, l.Open-1 })
	return e.release(o) == nil
}

// lend is vacate for a caller without the engine's lock.
func (e *Engine) lend() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.vacate()
}

// admit gives a trunk a slot, if it has none; [ErrBusy] where none is free. The caller holds the engine's lock.
func (e *Engine) admit(t *trunk) error {
	switch {
	case t.seq >= 0:
		return nil
	case len(e.admitted) == e.seqs && !e.vacate():
		return fmt.Errorf("engine: %d sequences have a slot: %w", e.seqs, ErrBusy)
	}
	e.take(t, e.cache.NewSeq(t.terms.Salt))
	return nil
}

// take gives a trunk a sequence of the cache.
func (e *Engine) take(t *trunk, seq forest.Seq) {
	t.seq = seq
	e.hold(t)
	if t.away {
		t.away = false
		e.load.Note(func(l *Load) { l.Open++ })
	}
	e.admitted = append(e.admitted, t)
	e.noteSlots()
}

func (e *Engine) noteSlots() {
	e.load.Note(func(l *Load) { l.Admitted, l.Pages = len(e.admitted), e.cache.Usage() })
}

// length returns the number of tokens of the trunk in the cache.
func (t *trunk) length() int { return t.e.cache.Forest.Len(t.seq) }

// drop drops what hangs from a trunk that has a slot.
func (t *trunk) drop() { _ = t.e.cache.Drop(t.seq, forest.Trunk) } // the sequence is open: this cannot fail

// priority is that of the trunk's terms, or the highest where it is owed.
func (t *trunk) priority() int {
	if t.owed {
		return MostPriority
	}
	return t.terms.Priority
}

// rank orders trunks: by priority, then by age. The last one is the first to lose its pages.
func rank(a, b *trunk) int {
	return cmp.Or(cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.arrival, b.arrival))
}

// owe makes the oldest trunk that waits as urgent as any, once enough have passed it or others.
func (e *Engine) owe(called []*trunk) {
	var oldest *trunk
	for _, t := range called {
		if e.passed >= mostPassed && t.waits && !t.owed && (oldest == nil || t.arrival < oldest.arrival) {
			oldest = t
		}
	}
	if oldest != nil {
		oldest.owed, e.passed = true, 0
	}
}

// reserve lets a trunk take pages. Where there are not as many, it takes those of the trunks that t outranks, the last first:
// they compute their texts anew when they go on.
func (e *Engine) reserve(t *trunk, take func() error) error {
	for {
		err := take()
		if !errors.Is(err, kv.ErrFull) {
			return err
		}
		last := e.preemptable(t)
		if last == nil {
			return err
		}
		if err := e.cache.Truncate(last.seq, 0); err != nil {
			return err
		}
		last.lost = true
		e.load.Note(func(l *Load) { l.Preempted++ })
	}
}

// preemptable returns the trunk that loses its pages to t, nil where there is none: those that have got theirs for the step that is
// made keep them.
func (e *Engine) preemptable(t *trunk) (last *trunk) {
	for _, o := range e.admitted {
		if o == t || o.pinned || slices.Contains(e.step.parts, o) || e.cache.Held(o.seq) == 0 ||
			!t.pinned && rank(t, o) > 0 && !e.queue.Idle(o, idleGrace) {
			continue
		}
		if last == nil || rank(last, o) < 0 {
			last = o
		}
	}
	return last
}
