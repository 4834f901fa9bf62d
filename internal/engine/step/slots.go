package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grove/internal/engine/adapters"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/turns"
)

// How long a sequence that nobody calls for keeps its pages from those that rank below it, and its slot from those that wait.
const (
	idleGrace = 200 * time.Millisecond
	slotGrace = 500 * time.Millisecond
)

// Terms are a sequence's settings for the scheduler: priority, salt, adapters.
type Terms struct {
	// Priority decides which sequence gets a slot first, and which loses its pages where they run out, the lowest first,
	// and weighs the share of prefill rows, twice for each [prioritySteps] up; usually 0, and within [MinPriority] and
	// [MaxPriority]. Where younger sequences of higher priority keep coming, the one that waits longest is now and then
	// as urgent as any, until it is closed: none starves.
	Priority int
	// Salt keeps a sequence apart: it shares pages, and what drafting learns, with sequences of the same salt only.
	Salt string
	// Block is the tokens of a block, counted from the text's beginning, of a text whose rows see all of theirs: it shares pages with others of the same alone. 0: rows
	// see those before them.
	Block int
	// Private keeps a sequence apart from all others, whatever its salt.
	Private bool
	// Adapters add to the products of the sequence's rows. Sequences share pages only where each row has the same adapters; nil: none.
	Adapters *adapters.Set

	adaptFrom int // the index from which the adapters work
}

// The range of [Terms.Priority].
const (
	MinPriority = -10
	MaxPriority = 10
)

// Check returns an error where the priority is out of range.
func (t *Terms) Check() error {
	if t.Priority < MinPriority || t.Priority > MaxPriority {
		return fmt.Errorf("engine: priority is %d; it must be from %d to %d", t.Priority, MinPriority, MaxPriority)
	}
	return nil
}

const (
	// prioritySteps is how many steps of priority double the share of prefill rows.
	prioritySteps = 4
	// mostPassed is how many sequences may get slots before an older one that waits, until the oldest one is owed its turn.
	mostPassed = 8
)

// Trunk is a sequence of the cache as queue and scheduler see it: its caller, its slot and its pages. All work that runs
// rows has one. The fields are guarded by the maker's lock, but for Source and Terms, which the trunk's goroutine sets before its
// first job; the caller has a lock of its own.
type Trunk struct {
	Seq       forest.Seq // -1: it has no slot
	Terms     Terms
	Source    *Source // of an encoder-decoder's text; nil: none
	Pinned    bool    // its pages are never taken
	Preempted bool    // its pages were taken: its text is computed anew
	Begun     bool    // it decodes: its prompt is computed
	Rows      int     // that it has of the step

	Admitted time.Time // it first had a slot; set once, before its first job is done, so that its caller reads it without the lock

	maker   *Maker
	caller  Caller
	job     Job // that the caller waits for
	arrival uint64
	adapter int // the number of its set of adapters while it has a slot; 0: none

	share
	waits bool    // the last step was made without it, for want of a slot, pages or rows
	owed  bool    // others have passed it: it is as urgent as any
	clock float64 // prefill rows, weighed by priority
	timed bool    // the clock goes with the engine's
	need  Need    // of the step that is made
	first int     // of its rows
}

// share is what a trunk has of the slots besides its own.
type share struct {
	Owner  string // who takes turns with others for slots; see package turns
	beside int    // slots for forks that it waits for, with its own
	kept   int    // slots for forks that it has, while it has its own
	away   bool   // its slot was taken while nobody called for it: it does not count as open
}

// Caller implements [Member].
func (t *Trunk) Caller() *Caller { return &t.caller }

// Do waits until a job of the trunk is done, or makes steps until it is. One job of a trunk is done at a time.
func (t *Trunk) Do(ctx context.Context, j Job) error {
	t.job = j
	if t.Owner == "" {
		t.Owner = turns.Of(ctx)
	}
	err := t.maker.queue.Do(ctx, t, t.maker.makeStep)
	if err == ErrCancelled {
		err = fmt.Errorf("engine: %w", err)
	}
	return err
}

// Open makes a trunk that waits for a slot, where fewer than most are open. Errors: [ErrBusy], and that of [Maker.Closed].
func (m *Maker) Open(t *Trunk, most int) error {
	if err := m.Closed(); err != nil {
		return err
	}
	t.maker, t.Seq = m, -1
	t.caller.Init(false)
	if m.count(t, most) || m.lend() && m.count(t, most) {
		return nil
	}
	return fmt.Errorf("engine: %d sequences: %w", most, ErrBusy)
}

// count counts a trunk that is opened, where fewer than most are.
func (m *Maker) count(t *Trunk, most int) (fits bool) {
	m.Load.Note(func(l *Load) {
		if fits = l.Open < most; fits {
			l.Open++
			l.Opened++
			t.arrival = l.Opened
		}
	})
	return fits
}

// OpenNow makes a trunk for a drafter, who calls several times in short order: it has a slot and never loses its pages. Errors:
// [ErrBusy] where no slot is free.
func (m *Maker) OpenNow(t *Trunk) error {
	if err := m.Open(t, m.MaxOpen); err != nil {
		return err
	}
	t.caller.Init(true)
	t.Pinned = true
	m.Lock()
	err := m.busy(m.reserving)
	if err == nil {
		err = m.Admit(t)
	}
	m.Unlock()
	if err != nil {
		return errors.Join(err, t.Close())
	}
	return nil
}

// Close gives back what a trunk holds.
func (t *Trunk) Close() error {
	m := t.maker
	m.Lock()
	defer m.Unlock()
	if t.Seq >= 0 {
		if err := m.release(t); err != nil {
			return err
		}
	}
	if !t.away {
		m.Load.Note(func(l *Load) { l.Open-- })
	}
	m.queue.Forget(t)
	return nil
}

// release takes the slot and the pages of a trunk that has a slot. The caller holds the maker's lock.
func (m *Maker) release(t *Trunk) error {
	m.admitted = slices.DeleteFunc(m.admitted, func(o *Trunk) bool { return o == t })
	if err := m.Cache.CloseSeq(t.Seq); err != nil {
		return err
	}
	t.Seq, m.kept, t.kept = -1, m.kept-t.kept, 0
	m.unhold(t)
	m.noteSlots()
	return nil
}

// vacate takes the slot of a trunk whose caller has been away for a while, such as a conversation between two turns, and
// reports whether there was one: when it goes on, it waits for a slot and computes anew what the cache has lost.
func (m *Maker) vacate() bool {
	i := slices.IndexFunc(m.admitted, m.idle)
	if i < 0 {
		return false
	}
	o := m.admitted[i]
	o.Preempted, o.owed, o.away = true, false, true
	m.Load.Note(func(l *Load) { l.Preempted, l.Open = l.Preempted+1, l.Open-1 })
	return m.release(o) == nil
}

// idle reports whether vacate may take a trunk's slot.
func (m *Maker) idle(t *Trunk) bool { return !t.Pinned && m.queue.Idle(t, m.SlotGrace) }

// lend is vacate for a caller without the maker's lock.
func (m *Maker) lend() bool {
	m.Lock()
	defer m.Unlock()
	return m.vacate()
}

// Admit gives a trunk a slot, if it has none, and those that it waits for beside it: all or none. [ErrBusy] where as many are not free. The caller holds the maker's lock.
func (m *Maker) Admit(t *Trunk) error {
	if t.Seq >= 0 {
		return nil
	}
	if err := m.busy(!m.clear(1 + t.beside)); err != nil {
		return err
	}
	m.Bind(t, m.Cache.NewSeq(t.Terms.Salt))
	m.keep(t, t.beside)
	return nil
}

// Bind gives a trunk a sequence of the cache. The caller holds the maker's lock.
func (m *Maker) Bind(t *Trunk, seq forest.Seq) {
	t.Seq = seq
	if t.Admitted.IsZero() {
		t.Admitted = time.Now()
	}
	m.hold(t)
	if t.away {
		t.away = false
		m.Load.Note(func(l *Load) { l.Open++ })
	}
	m.admitted = append(m.admitted, t)
	m.noteSlots()
}

// Copy gives a trunk that has a slot a copy of another's pages in place of its own. Where there is no page for the part that is copied,
// or a trunk has no slot, its text is computed anew. The caller holds the maker's lock.
func (m *Maker) Copy(t, from *Trunk) error {
	if t.Seq < 0 {
		return nil
	}
	if err := m.release(t); err != nil || from.Seq < 0 {
		return errors.Join(err, m.Admit(t))
	}
	seq, err := m.Cache.Fork(from.Seq, forest.Trunk)
	if errors.Is(err, kv.ErrFull) {
		return m.Admit(t)
	}
	if err == nil {
		m.Bind(t, seq)
	}
	return err
}

func (m *Maker) noteSlots() {
	m.Load.Note(func(l *Load) { l.Admitted, l.Pages = len(m.admitted), m.Cache.Usage() })
}

// Len returns the number of tokens of the trunk in the cache.
func (t *Trunk) Len() int { return t.maker.Cache.Forest.Len(t.Seq) }

// Drop drops what hangs from a trunk that has a slot.
func (t *Trunk) Drop() { _ = t.maker.Cache.Drop(t.Seq, forest.Trunk) } // the sequence is open: this cannot fail

// priority is that of the trunk's terms, or the highest where it is owed.
func (t *Trunk) priority() int {
	if t.owed {
		return MaxPriority
	}
	return t.Terms.Priority
}

// rank orders trunks: by priority, then by age. The last one is the first to lose its pages.
func rank(a, b *Trunk) int {
	return cmp.Or(cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.arrival, b.arrival))
}

// owe makes the oldest trunk that waits as urgent as any, once enough have passed it or others.
func (m *Maker) owe(called []*Trunk) {
	var oldest *Trunk
	for _, t := range called {
		if m.passed >= mostPassed && t.waits && !t.owed && (oldest == nil || t.arrival < oldest.arrival) {
			oldest = t
		}
	}
	if oldest != nil {
		oldest.owed, m.passed = true, 0
	}
}

// Reserve lets a trunk take pages. Where there are not as many, it takes those of the trunks that t outranks, the last first:
// they compute their texts anew when they go on. The caller holds the maker's lock.
func (m *Maker) Reserve(t *Trunk, take func() error) error {
	for {
		err := take()
		if !errors.Is(err, kv.ErrFull) {
			return err
		}
		last := m.preemptable(t)
		if last == nil {
			return err
		}
		if err := m.Cache.Truncate(last.Seq, 0); err != nil {
			return err
		}
		last.Preempted = true
		m.Load.Note(func(l *Load) { l.Preempted++ })
	}
}

// preemptable returns the trunk that loses its pages to t, nil where there is none: those that have got theirs for the step that is
// made keep them.
func (m *Maker) preemptable(t *Trunk) (last *Trunk) {
	for _, o := range m.admitted {
		if o == t || o.Pinned || slices.Contains(m.step.parts, o) || m.Cache.Held(o.Seq) == 0 ||
			!t.Pinned && rank(t, o) > 0 && !m.queue.Idle(o, m.IdleGrace) {
			continue
		}
		if last == nil || rank(last, o) < 0 {
			last = o
		}
	}
	return last
}
