// queue.go lets callers wait for work that one of them does for all. There is no goroutine for the work: one
// of the callers leads, and does it in rounds until its own is done; then the next one leads. A caller by itself
// leads at once, so that the queue costs it nothing.

package step

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrCancelled reports a caller that another one has cancelled.
var ErrCancelled = errors.New("cancelled by another sequence that it shares a beginning with")

// Member is an element of a queue: it has a caller.
type Member interface {
	comparable
	Caller() *Caller
}

// Caller is a caller of the queue and what it waits for. Its fields are guarded by the queue's lock. The zero value
// is not of use; see [Caller.Init].
type Caller struct {
	ctx       context.Context
	err       error
	done      bool
	made      time.Time     // when the caller was
	wake      chan struct{} // the caller is to look
	due       bool          // it is expected to call again soon
	served    time.Time     // when the last call ended
	away      time.Duration // from one call's end to the next, averaged
	Busy      atomic.Bool   // it works for its next call, so that it is not idle
	bursts    bool          // it calls several times in short order, then not for long
	cancelled atomic.Bool   // no call is served any more

	refused atomic.Pointer[error] // the queue's, where it was closed during the call
}

// Init makes a caller that waits for nothing. bursts says that its calls come several in short order, as those of a
// drafter do, so that long absences say nothing of when it is back.
func (c *Caller) Init(bursts bool) {
	c.wake, c.bursts, c.done, c.made = make(chan struct{}, 1), bursts, true, time.Now()
}

// absent returns for how long no call has waited: a caller may never have called, such as a fork's.
func (c *Caller) absent() time.Duration {
	if c.served.IsZero() {
		return time.Since(c.made)
	}
	return time.Since(c.served)
}

// Context returns the context of the call that waits, for the leader.
func (c *Caller) Context() context.Context { return c.ctx }

// Err returns an error where the caller does not want its call served any longer: its context has ended, or it is
// cancelled, or the queue is closed.
func (c *Caller) Err() error {
	if err := c.refused.Load(); err != nil {
		return *err
	}
	if c.cancelled.Load() {
		return ErrCancelled
	}
	return c.ctx.Err()
}

// CompareDeadline is negative where the context of the caller's call ends before that of another's, for the leader.
func (c *Caller) CompareDeadline(other *Caller) int {
	end, any := c.ctx.Deadline()
	otherEnd, otherAny := other.ctx.Deadline()
	switch {
	case any && otherAny:
		return end.Compare(otherEnd)
	case any:
		return -1
	case otherAny:
		return 1
	}
	return 0
}

// Cancelled reports whether the caller was cancelled.
func (c *Caller) Cancelled() bool { return c.cancelled.Load() }

// signal wakes the caller.
func (c *Caller) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Queue is the callers that wait. It is safe for concurrent use; its lock is held for moments.
type Queue[M Member] struct {
	mu      sync.Mutex
	waiting []M
	leader  *Caller       // one of them
	asleep  bool          // the leader waits for an event
	events  int           // calls, and what [Queue.Notify] tells
	due     atomic.Int32  // callers that are expected back
	round   time.Duration // how long the last round took
	closed  atomic.Pointer[error]
	empty   chan struct{} // closed when the last caller has left a closed queue; nil: the queue is open
}

// Do waits until a member's call is served, or leads until it is: round does the work of a round for all that wait.
// One call of a member is served at a time. Errors: those of [Queue.Finish] and [Queue.Close], [ErrCancelled].
func (q *Queue[M]) Do(ctx context.Context, m M, round func(leader M)) error {
	c := m.Caller()
	if c.cancelled.Load() {
		return ErrCancelled
	}
	lead, err := q.enter(ctx, m)
	if err != nil {
		return err
	}
	defer q.leave(m)
	for {
		if lead {
			round(m)
		} else {
			q.wait(c)
		}
		var done bool
		if done, lead = q.look(c); done {
			return c.err
		}
	}
}

// Waiting returns how many callers wait.
func (q *Queue[M]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Observe tells how long a round took.
func (q *Queue[M]) Observe(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.round = d
}

// Notify wakes a sleeping leader: something has changed that it may wait for.
func (q *Queue[M]) Notify() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.happened()
}

func (q *Queue[M]) happened() {
	q.events++
	if q.asleep {
		q.asleep = false
		q.leader.signal()
	}
}

// Cancel ends the running call of a member, within a round, and refuses all later ones.
func (q *Queue[M]) Cancel(m M) {
	m.Caller().cancelled.Store(true)
	q.Notify()
}

// Close ends the calls of all members with an error, within a round, and refuses later ones with it. It returns when no
// member leads any longer. A second call waits for the same; its error is not used.
func (q *Queue[M]) Close(err error) {
	q.mu.Lock()
	if q.empty == nil {
		q.empty = make(chan struct{})
		q.closed.Store(&err)
		for _, m := range q.waiting {
			m.Caller().refused.Store(&err)
		}
		q.happened()
		q.drained()
	}
	q.mu.Unlock()
	<-q.empty
}

// Closed returns the error of [Queue.Close], nil where the queue is open.
func (q *Queue[M]) Closed() error {
	if err := q.closed.Load(); err != nil {
		return *err
	}
	return nil
}

// drained tells [Queue.Close] where no caller is left. The caller holds the lock.
func (q *Queue[M]) drained() {
	if q.empty != nil && q.leader == nil {
		close(q.empty)
	}
}

// enter queues a caller, and reports whether it leads.
func (q *Queue[M]) enter(ctx context.Context, m M) (lead bool, err error) {
	t := m.Caller()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.Closed(); err != nil {
		return false, err
	}
	t.ctx, t.err, t.done = ctx, nil, false
	q.arrived(t)
	if away := time.Since(t.served); !t.served.IsZero() && (!t.bursts || away < burst*q.round) {
		t.away += (away - t.away) / 4
	}
	q.waiting = append(q.waiting, m)
	if q.leader == nil {
		q.leader = t
	}
	if q.leader != t {
		q.happened()
	}
	return q.leader == t, nil
}

// arrived notes that a caller is not expected any longer. The caller holds the lock.
func (q *Queue[M]) arrived(t *Caller) {
	if t.due {
		t.due = false
		q.due.Add(-1)
	}
}

// leave takes a caller out of the queue, which is there only where a panic passes, and passes the lead on.
func (q *Queue[M]) leave(m M) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(m)
	if q.leader != m.Caller() {
		return
	}
	q.leader, q.asleep = nil, false
	if len(q.waiting) > 0 {
		q.leader = q.waiting[0].Caller()
		q.leader.signal()
	}
	q.drained()
}

func (q *Queue[M]) remove(m M) {
	if i := slices.Index(q.waiting, m); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// wait returns when a caller that does not lead is to look. One whose context has ended tells the leader, and
// waits: its rows may be in a step.
func (q *Queue[M]) wait(t *Caller) {
	select {
	case <-t.wake:
	case <-t.ctx.Done():
		q.mu.Lock()
		if !t.done && q.leader != t {
			q.happened()
		}
		q.mu.Unlock()
		<-t.wake
	}
}

func (q *Queue[M]) look(t *Caller) (done, lead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.done, q.leader == t
}

// Finish ends the call of a member with an error, or without.
func (q *Queue[M]) Finish(m M, err error) {
	t := m.Caller()
	q.mu.Lock()
	defer q.mu.Unlock()
	t.err, t.done, t.served = err, true, time.Now()
	q.remove(m)
	if err == nil && t.away < q.round/waitDivisor {
		t.due = true
		q.due.Add(1)
	}
	if q.leader != t {
		t.signal()
	}
}

// waitDivisor divides a round's time into the time that the next round is put off for callers that the last one served: they come back
// soon, and a round for all of them takes little longer than one for some. A caller that was longer away lately is not waited for.
const waitDivisor = 4

// burst is how many rounds may lie between two calls of one burst.
const burst = 2

// AwaitReturning waits for the callers that the last round served and that are usually back soon. The leader calls it.
func (q *Queue[M]) AwaitReturning() {
	if q.due.Load() == 0 {
		return
	}
	const spin = 50 * time.Microsecond
	for start := time.Now(); q.due.Load() > 0; {
		switch waited := time.Since(start); {
		case waited > q.round/waitDivisor:
			return
		case waited < spin:
			runtime.Gosched()
		default:
			time.Sleep(spin)
		}
	}
}

// Callers appends the members that wait to dst, and expects nobody of known any longer. It returns the number of events.
func (q *Queue[M]) Callers(dst, known []M) ([]M, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range known {
		q.arrived(m.Caller())
	}
	return append(dst, q.waiting...), q.events
}

// Sleep lets the leader wait until something happens since there were so many events, its context ends, or some time
// has passed.
func (q *Queue[M]) Sleep(leader M, events int, most time.Duration) {
	t := leader.Caller()
	q.mu.Lock()
	if q.events != events {
		q.mu.Unlock()
		return
	}
	q.asleep = true
	q.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-t.wake:
	case <-t.ctx.Done():
	case <-timer.C:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asleep = false
}

// Forget expects nothing of a member any longer.
func (q *Queue[M]) Forget(m M) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.arrived(m.Caller())
	q.happened()
}

// Idle reports whether a member's caller has been away for some time, and not as it works for its next call.
func (q *Queue[M]) Idle(m M, since time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := m.Caller()
	return c.done && !c.Busy.Load() && c.absent() > since
}

// Active reports whether the caller of one of the members waits, or was served less than some time ago.
func (q *Queue[M]) Active(members []M, but []M, since time.Duration, counts func(M) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range members {
		c := m.Caller()
		if counts(m) && (!c.done || c.absent() < since) && !slices.Contains(but, m) {
			return true
		}
	}
	return false
}
