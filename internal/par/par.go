// Package par holds the worker pool of the forward pass: a few goroutines that share out the items
// of one task after another, with about half a microsecond between tasks.
package par

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// A Task is work that is cut into items, together big enough (some microseconds) to be worth
// another core. Its owner stores it once and passes it to every Run.
type Task interface {
	// Do works on one item. Calls for different items run at once; worker, 0 to Threads()-1, is
	// the same for no two of them, so it may index scratch space.
	Do(worker, item int)
}

// A Pool runs tasks on a fixed number of threads, the caller's among them.
// Idle workers spin for [spin], so that the tasks of one step follow each other quickly, then
// sleep and cost nothing. A Pool is safe for use by several goroutines; their Runs take turns.
//
// Every thread has a share of a task's items, each threads-th of them, and claims these on a cache line of its own, so that
// the threads of a Run meet twice, when it begins and when it ends, and not for each item; and what is computed again finds
// its data in the cache of the same core. A thread that is done helps the others, but not at once: their last items are
// usually done before another thread could have claimed them.
//
// A worker that is late from an earlier Run is harmless: it claims only items of the Run that it has read of, and a Run
// cannot end before each of its items is claimed and done. So the task is read only behind a claim, and only written
// while none is open.
type Pool struct {
	// What every Run writes. Workers read only what is below the gap, so that it stays in their caches.
	mu    sync.Mutex   // held by Run and Close
	turns atomic.Int64 // begun and ended Runs: odd while one runs
	due   int64        // what done is once the last Run has ended
	_     [128]byte

	post    *post
	shares  []share  // by thread
	done    *counter // items that workers have finished, of all Runs
	ended   func() bool
	fault   atomic.Pointer[fault]
	caller  *waiter
	workers []*waiter
	closed  atomic.Bool
	exited  sync.WaitGroup
	trace   *Trace // of [NewTraced]
}

// post is where workers read of a new Run: all on one cache line, which idle workers poll.
type post struct {
	head atomic.Uint64 // the number of the Run, and below it the number of its claims
	task Task
	n    int // items
	per  int // items of a claim
	_    [88]byte
}

// The lowest bits of [post].head and [share].claimed count claims. The others have the number of the Run, which no pool lives
// long enough to use up.
const (
	claimBits = 16
	maxClaims = 1<<claimBits - 1
)

// share is the claims of one thread: the number of the Run that one was last made of, and how many.
type share struct {
	claimed atomic.Uint64
	_       [120]byte
}

// counter keeps to cache lines of its own.
type counter struct {
	atomic.Int64
	_ [120]byte
}

// fault is what an item panicked with.
type fault struct{ value any }

// New starts a pool of that many threads: the caller of Run and threads-1 goroutines. With one
// thread (or fewer) there are no goroutines and Run is a loop.
func New(threads int) *Pool {
	p := &Pool{post: new(post), done: new(counter), shares: make([]share, max(1, threads))}
	p.caller = newWaiter(threads)
	p.ended = func() bool { return p.done.Load() == p.due }
	for worker := 1; worker < threads; worker++ {
		w := newWaiter(threads)
		p.workers = append(p.workers, w)
		p.exited.Go(func() { p.serve(worker, w) })
	}
	return p
}

// serve takes part in Runs until the pool is closed.
func (p *Pool) serve(worker int, w *waiter) {
	// A fault on mapped memory becomes a panic, which Run passes to a caller that can tell what
	// it means; a worker that met it would end the process.
	debug.SetPanicOnFault(true)
	t := part{worker: worker}
	news := func() bool { return p.post.head.Load() != t.head || p.closed.Load() }
	for w.wait(news, p.forget); !p.closed.Load(); w.wait(news, p.forget) {
		t = part{worker: worker, head: p.post.head.Load()}
		p.finish(p.work(&t, 1))
		if !soon(news) {
			p.finish(p.work(&t, len(p.shares)))
		}
	}
}

// finish counts items that a worker has done.
func (p *Pool) finish(items int) {
	if items > 0 {
		p.done.Add(int64(items))
		p.caller.wake()
	}
}

// Threads returns the number of threads that Run uses, the caller's included.
func (p *Pool) Threads() int {
	if p.trace != nil {
		return p.trace.threads
	}
	return len(p.workers) + 1
}

// Run does items 0 to n-1 of the task and returns when all are done; each thread takes its items in ascending order. It
// allocates nothing. If an item panics, the others still run and Run then panics with the first value. A task must not
// call Run on its own pool: that deadlocks.
func (p *Pool) Run(n int, task Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns.Add(1)
	defer p.turns.Add(1)
	if p.trace != nil {
		p.trace.run(n, task)
		return
	}
	if n <= 1 || len(p.workers) == 0 {
		for item := range n {
			task.Do(0, item)
		}
		return
	}
	per := (n + maxClaims - 1) / maxClaims
	head := (p.post.head.Load()>>claimBits+1)<<claimBits | uint64((n+per-1)/per)
	p.post.task, p.post.n, p.post.per = task, n, per
	p.post.head.Store(head)
	for _, w := range p.workers[:min(n-1, len(p.workers))] {
		w.wake()
	}
	t := part{head: head}
	p.due += int64(n - p.work(&t, 1))
	if !soon(p.ended) {
		p.due -= int64(p.work(&t, len(p.shares)))
		p.caller.wait(p.ended, func() {})
	}
	if f := p.fault.Load(); f != nil {
		p.fault.Store(nil)
		panic(f.value)
	}
}

// forget drops the last task, which may hold much memory, where none runs. Workers that fall asleep call it: were it a part of
// Run, idle workers would read the post once more each time.
func (p *Pool) forget() {
	if p.mu.TryLock() {
		p.post.task = nil
		p.mu.Unlock()
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

// part is the part of one thread in a Run.
type part struct {
	worker    int
	head      uint64 // of the post
	tried     int    // shares in which nothing is left to claim, its own first
	next, end int    // items that are claimed and not begun
	items     int    // that were claimed
}

// work does items of the next shares, its own first, until all of these are claimed, and returns how many it did.
func (p *Pool) work(t *part, shares int) (items int) {
	before := t.items
	for !p.try(t, shares) {
	}
	return t.items - before
}

// try is work up to the first item that panics. It reports whether none did.
func (p *Pool) try(t *part, shares int) (ended bool) {
	defer func() {
		if !ended {
			p.fault.CompareAndSwap(nil, &fault{recover()})
		}
	}()
	for {
		for t.next < t.end {
			t.next++
			p.post.task.Do(t.worker, t.next-1)
		}
		if !p.claim(t, shares) {
			return true
		}
	}
}

// claim claims further items for a thread. It returns false where none is left in the first shares.
func (p *Pool) claim(t *part, shares int) bool {
	threads, claims := len(p.shares), int(t.head&maxClaims)
	for ; t.tried < shares; t.tried++ {
		of := t.worker + t.tried
		if of >= threads {
			of -= threads
		}
		if of >= claims {
			continue
		}
		if i := p.shares[of].take(t.head&^maxClaims, (claims-of+threads-1)/threads); i >= 0 {
			t.next = (i*threads + of) * p.post.per
			t.end = min(t.next+p.post.per, p.post.n)
			t.items += t.end - t.next
			return true
		}
	}
	return false
}

// take makes the next of most claims of a Run. It returns its place, or -1 where all are made or a later Run has begun.
func (s *share) take(run uint64, most int) int {
	for {
		at := s.claimed.Load()
		place := 0
		if at >= run {
			if place = int(at - run); place >= most {
				return -1
			}
		}
		if s.claimed.CompareAndSwap(at, run+uint64(place)+1) {
			return place
		}
	}
}

// spin is how long a thread that has nothing to do stays awake: longer than the gaps between the
// tasks of a step, short enough that an idle pool is idle.
const spin = 100 * time.Microsecond

// soon reports whether ready returns true within the time in which another thread ends a short item.
func soon(ready func() bool) bool {
	for range 256 {
		if ready() {
			return true
		}
	}
	return false
}

// A waiter lets one goroutine wait until something is ready: first spinning, then asleep.
type waiter struct {
	asleep atomic.Bool
	checks int // between two yields
	signal chan struct{}
	_      [104]byte
}

// newWaiter makes a waiter of one of so many threads. Where each has a processor it yields every few microseconds, for
// other goroutines: a thread that yields is late for what becomes ready.
func newWaiter(threads int) *waiter {
	w := &waiter{checks: 1024, signal: make(chan struct{}, 1)}
	if threads > runtime.GOMAXPROCS(0) {
		w.checks = 16
	}
	return w
}

// wait returns once ready returns true, and calls tired before it sleeps. Whoever makes it so must call wake afterwards; wakes
// without cause do no harm.
func (w *waiter) wait(ready func() bool, tired func()) {
	for !w.spin(ready) {
		tired()
		w.asleep.Store(true)
		// Whoever swaps asleep back owns the wake-up: a wake that saw it sends one signal.
		if ready() && w.asleep.CompareAndSwap(true, false) {
			return
		}
		<-w.signal
	}
}

// spin reports whether ready returned true within the time for which spinning pays. It yields between
// rounds, so that with more threads than processors the work still moves.
func (w *waiter) spin(ready func() bool) bool {
	var start time.Time
	for {
		for range w.checks {
			if ready() {
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
