package step

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type member struct {
	caller Caller
	left   int // rounds that its call takes
}

func (m *member) Caller() *Caller { return &m.caller }

// TestQueue: every call is served, one leader makes rounds at a time, and a call that is cancelled or whose context ends gets its error.
func TestQueue(t *testing.T) {
	var q Queue[*member]
	var leaders, rounds atomic.Int32
	round := func(leader *member) {
		if leaders.Add(1) != 1 {
			t.Error("two members lead")
		}
		defer leaders.Add(-1)
		q.AwaitReturning()
		rounds.Add(1)
		start := time.Now()
		all, events := q.Callers(nil, nil)
		worked := false
		for _, m := range all {
			worked = worked || m.left >= 0 || m.caller.Err() != nil // behind Finish the member is its caller's
			switch err := m.caller.Err(); {
			case err != nil:
				q.Finish(m, err)
			case m.left < 0: // nothing can be done for it
			case m.left == 0:
				q.Finish(m, nil)
			default:
				m.left--
			}
		}
		q.Observe(time.Since(start))
		if !worked {
			q.Sleep(leader, events, time.Millisecond)
		}
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			m := &member{}
			m.caller.Init(i%2 == 0)
			for k := range 200 {
				m.left = (i + k) % 5
				if err := q.Do(t.Context(), m, round); err != nil {
					t.Error(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			m.left = -1
			if err := q.Do(ctx, m, round); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call without an end: %v", err)
			}
			go q.Cancel(m)
			m.left = -1
			if err := q.Do(t.Context(), m, round); !errors.Is(err, ErrCancelled) {
				t.Errorf("a call that was cancelled: %v", err)
			}
			if err := q.Do(t.Context(), m, round); !errors.Is(err, ErrCancelled) {
				t.Errorf("a call behind one that was cancelled: %v", err)
			}
			q.Forget(m)
		})
	}
	all.Wait()
	if q.Waiting() != 0 || rounds.Load() == 0 {
		t.Errorf("%d wait after %d rounds", q.Waiting(), rounds.Load())
	}
}

// TestPanic: a panic of the work passes through the leader's call and leaves the queue to the others.
func TestPanic(t *testing.T) {
	var q Queue[*member]
	m := &member{}
	m.caller.Init(false)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = q.Do(t.Context(), m, func(*member) { panic("fault") })
	}()
	other := &member{}
	other.caller.Init(false)
	if err := q.Do(t.Context(), other, func(l *member) { q.Finish(l, nil) }); err != nil || q.Waiting() != 0 {
		t.Errorf("%v, %d wait", err, q.Waiting())
	}
}

// TestClose: a closed queue ends the calls that wait and the leader's, returns when no round runs, and refuses later calls.
func TestClose(t *testing.T) {
	var q Queue[*member]
	var rounds atomic.Int32
	round := func(leader *member) {
		rounds.Add(1)
		defer rounds.Add(-1)
		all, events := q.Callers(nil, nil)
		ended := false
		for _, m := range all {
			if err := m.caller.Err(); err != nil {
				q.Finish(m, err)
				ended = true
			}
		}
		if !ended {
			q.Sleep(leader, events, time.Minute)
		}
	}
	over := errors.New("over")
	var all sync.WaitGroup
	for range 8 {
		m := &member{}
		m.caller.Init(false)
		all.Go(func() {
			for range 2 { // the second call comes behind Close, or just before
				if err := q.Do(t.Context(), m, round); !errors.Is(err, over) {
					t.Errorf("a call of a queue that closes: %v", err)
				}
			}
		})
	}
	for q.Waiting() < 8 {
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		all.Go(func() {
			q.Close(over)
			if n := rounds.Load(); n != 0 {
				t.Errorf("%d rounds run in a closed queue", n)
			}
		})
	}
	all.Wait()
	if q.Waiting() != 0 || !errors.Is(q.Closed(), over) {
		t.Errorf("%d wait; %v", q.Waiting(), q.Closed())
	}
	var idle Queue[*member]
	idle.Close(over) // nobody calls
}

// TestSleep: a leader that sleeps is woken by a call, and by what happens; what happened since it looked does not let it sleep.
func TestSleep(t *testing.T) {
	var q Queue[*member]
	var rounds atomic.Int32
	asleep := make(chan struct{}, 8)
	round := func(leader *member) {
		rounds.Add(1)
		all, events := q.Callers(nil, nil)
		if len(all) < 2 && rounds.Load() < 3 {
			asleep <- struct{}{}
			q.Sleep(leader, events, time.Minute)
			return
		}
		for _, m := range all {
			q.Finish(m, nil)
		}
	}
	call := func(m *member) {
		m.caller.Init(false)
		if err := q.Do(t.Context(), m, round); err != nil {
			t.Error(err)
		}
	}
	start := time.Now()
	var all sync.WaitGroup
	all.Go(func() { call(&member{}) })
	<-asleep
	q.Notify() // perhaps before it sleeps
	<-asleep
	all.Go(func() { call(&member{}) })
	all.Wait()
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("a leader slept for %v", d)
	}
}

// TestExpected: a caller that was served is expected back soon, but not one that failed.
func TestExpected(t *testing.T) {
	for _, fault := range []error{nil, errors.New("fault")} {
		var q Queue[*member]
		q.Observe(time.Hour)
		m := &member{}
		m.caller.Init(false)
		if err := q.Do(t.Context(), m, func(l *member) { q.Finish(l, fault) }); err != fault {
			t.Errorf("%v, want %v", err, fault)
		}
		if expected := q.due.Load() == 1; expected != (fault == nil) {
			t.Errorf("behind the error %v the caller is expected: %v", fault, expected)
		}
	}
}
