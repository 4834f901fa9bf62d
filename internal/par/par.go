// Package par holds the worker pool of the forward pass: a few goroutines that share out the items
// of one task after another, with about a microsecond between tasks.
package par

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// A Task is work that is cut into items, each big enough (some ten microseconds) to be worth
// handing to another core. Its owner stores it once and passes it to every Run.
type Task interface {
	// Do works on one item. Calls for different items run at once; worker, 0 to Threads()-1, is
	// the same for no two of them, so it may index scratch space.
	Do(worker, item int)
}

// A Pool runs tasks on a fixed number of threads, the caller's among them.
// Idle workers spin for [spin], so that the tasks of one step follow each other quickly, then
// sleep and cost nothing. A Pool is safe for use by several goroutines; their Runs take turns.
//
// The items of a task are claimed by counting left down. A worker that is late from an earlier
// Run is harmless: whatever it claims belongs to the current Run, which cannot end before that
// item is done, so task and n are read only after a claim and only written while none is open.
type Pool struct {
	mu    sync.Mutex // held by Run and Close
	task  Task
	n     int64
	left  counter // items not yet claimed; below zero means none, as zero does
	done  counter // items finished
	fault atomic.Pointer[fault]
	turns atomic.Int64 // begun and ended Runs: odd while one runs

	caller  *waiter
	workers []*waiter
	closed  atomic.Bool
	exited  sync.WaitGroup
}

// counter keeps to a cache line of its own: one is polled by idle workers while the other is
// written by busy ones.
type counter struct {
	atomic.Int64
	_ [56]byte
}

// fault is what an item panicked with.
type fault struct{ value any }

// New starts a pool of that many threads: the caller of Run and threads-1 goroutines. With one
// thread (or fewer) there are no goroutines and Run is a loop.
func New(threads int) *Pool {
	p := &Pool{}
	p.caller = newWaiter(func() bool { return p.done.Load() == p.n })
	pending := func() bool { return p.left.Load() > 0 || p.closed.Load() }
	for worker := 1; worker < threads; worker++ {
		w := newWaiter(pending)
		p.workers = append(p.workers, w)
		p.exited.Go(func() {
			// A fault on mapped memory becomes a panic, which Run passes to a caller that can tell what
			// it means; a worker that met it would end the process.
			debug.SetPanicOnFault(true)
			for !p.closed.Load() {
				p.work(worker)
				w.wait()
			}
		})
	}
	return p
}

// Threads returns the number of threads that Run uses, the caller's included.
func (p *Pool) Threads() int { return len(p.workers) + 1 }

// Run does items 0 to n-1 of the task and returns when all are done; idle threads take the next
// item in ascending order. It allocates nothing. If an item panics, the others still run and Run
// then panics with the first value. A task must not call Run on its own pool: that deadlocks.
func (p *Pool) Run(n int, task Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns.Add(1)
	defer p.turns.Add(1)
	if n <= 1 || len(p.workers) == 0 {
		for item := range n {
			task.Do(0, item)
		}
		return
	}
	p.task, p.n = task, int64(n)
	p.done.Store(0)
	p.left.Store(p.n)
	for _, w := range p.workers[:min(n-1, len(p.workers))] {
		w.wake()
	}
	p.work(0)
	p.caller.wait()
	p.task = nil
	if f := p.fault.Swap(nil); f != nil {
		panic(f.value)
	}
}

// Idle returns a function that reports whether the pool ran nothing since the function's last call: work that can
// wait asks it before each of its small pieces. One goroutine may call it.
func (p *Pool) Idle() func() bool {
	last := int64(-1)
	return func() bool {
		before := last
		last = p.turns.Load()
		return last == before && last%2 == 0
	}
}

// Close ends the pool's goroutines and returns when they are gone. A closed pool still runs tasks,
// on the caller's thread alone.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed.Store(true)
	for _, w := range p.workers {
		w.wake()
	}
	p.exited.Wait()
	p.workers = nil
}

// work claims and does items until none is left.
func (p *Pool) work(worker int) {
	for p.left.Load() > 0 {
		if left := p.left.Add(-1); left >= 0 {
			p.do(worker, int(p.n-1-left))
		}
	}
}

// do does one item and counts it, also when it panics. n is read before the item counts as done:
// afterwards it may belong to the next Run.
func (p *Pool) do(worker, item int) {
	n := p.n
	defer func() {
		if value := recover(); value != nil {
			p.fault.CompareAndSwap(nil, &fault{value})
		}
		if p.done.Add(1) == n {
			p.caller.wake()
		}
	}()
	p.task.Do(worker, item)
}

// spin is how long a thread that has nothing to do stays awake: longer than the gaps between the
// tasks of a step, short enough that an idle pool is idle.
const spin = 100 * time.Microsecond

// A waiter lets one goroutine wait until ready: first spinning, then asleep.
type waiter struct {
	ready  func() bool
	asleep atomic.Bool
	signal chan struct{}
}

func newWaiter(ready func() bool) *waiter {
	return &waiter{ready: ready, signal: make(chan struct{}, 1)}
}

// wait returns once ready. Whoever makes it so must call wake afterwards; wakes without cause do
// no harm.
func (w *waiter) wait() {
	for !w.spin() {
		w.asleep.Store(true)
		// Whoever swaps asleep back owns the wake-up: a wake that saw it sends one signal.
		if w.ready() && w.asleep.CompareAndSwap(true, false) {
			return
		}
		<-w.signal
	}
}

// spin reports whether ready returned true within the time for which spinning pays. It yields between
// rounds, so that with more threads than processors the work still moves.
func (w *waiter) spin() bool {
	const checks = 64
	var start time.Time
	for {
		for range checks {
			if w.ready() {
				return true
			}
		}
		if start.IsZero() {
			start = time.Now()
		} else if time.Since(start) > spin {
			return false
		}
		runtime.Gosched()
	}
}

// wake ends the sleep of the waiter, if it sleeps.
func (w *waiter) wake() {
	if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
		w.signal <- struct{}{}
	}
}
