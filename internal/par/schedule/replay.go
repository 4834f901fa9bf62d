package schedule

import "math"

// replay is one Run on several threads.
type replay struct {
	*Machine
	items   []Item
	workers []worker
	claims  []int // of each thread's share
	now     float64
	last    float64 // when the counter of finished items is free
	waits   float64 // of all threads, for claims and for cache lines
	longer  float64 // of all items, for memory
}

// worker is one thread.
type worker struct {
	state state
	ready float64 // waiting: when it claims
	left  float64 // working: seconds of its item that are not done, at full speed
	read  float64 // working: bytes a second of its item, at full speed
	tried int     // shares in which nothing is left
	items int     // that it did
}

type state int

const (
	waiting state = iota
	working
	ended
)

// replay adds a Run to a prediction. As in a pool, thread w has the items w, w+threads, ..., then helps thread w+1, then w+2, ...
// A thread learns of the Run, and tells of its end, on a cache line that all of them share.
func (m *Machine) replay(p *Prediction, items []Item) {
	r := replay{Machine: m, items: items, workers: make([]worker, p.Threads), claims: make([]int, p.Threads)}
	for w := range r.workers {
		r.wait(&r.workers[w], float64(w)*m.Handoff)
	}
	for r.next() {
	}
	busy := m.Slowdown * total(items)
	end := max(r.now, r.last) + m.Handoff
	threads := float64(p.Threads)
	barriers := r.waits/threads + end - r.now
	p.Items += busy / threads
	p.Memory += r.longer / threads
	p.Barriers += barriers
	p.Imbalance += end - barriers - (busy+r.longer)/threads
}

// wait makes a thread claim after some seconds.
func (r *replay) wait(w *worker, seconds float64) {
	w.state, w.ready = waiting, r.now+seconds
	r.waits += seconds
}

// next goes on to the next event: a thread claims, or ends its item. It returns false where all threads have ended.
func (r *replay) next() bool {
	speed, first, when := r.speed(), -1, math.Inf(1)
	for i := range r.workers {
		w := &r.workers[i]
		at := w.ready
		switch w.state {
		case ended:
			continue
		case working:
			at = r.now + w.left/r.of(w, speed)
		}
		if at < when {
			first, when = i, at
		}
	}
	if first < 0 {
		return false
	}
	for i := range r.workers {
		if w := &r.workers[i]; w.state == working {
			done := (when - r.now) * r.of(w, speed)
			w.left -= done
			r.longer += when - r.now - done
		}
	}
	r.now = when
	w := &r.workers[first]
	if w.state == working {
		r.wait(w, r.Claim)
	} else {
		r.claim(first)
	}
	return true
}

// speed returns the share of their full speed at which items that read memory run.
func (r *replay) speed() float64 {
	read, threads := 0.0, 0
	for i := range r.workers {
		if w := &r.workers[i]; w.state == working && w.read > 0 {
			read, threads = read+w.read, threads+1
		}
	}
	if threads == 0 {
		return 1
	}
	return min(1, r.Read(threads)/read)
}

func (r *replay) of(w *worker, speed float64) float64 {
	if w.read == 0 {
		return 1
	}
	return speed
}

// claim gives a thread its next item, or makes it look at the shares of others, or ends it.
func (r *replay) claim(i int) {
	w, threads := &r.workers[i], len(r.workers)
	looks := 0
	for ; w.tried < threads; w.tried++ {
		of := (i + w.tried) % threads
		item := of + r.claims[of]*threads
		if item >= len(r.items) {
			looks++
			continue
		}
		if looks > 0 {
			w.ready = r.now + float64(looks)*r.Handoff // it gets there later
			return
		}
		r.claims[of]++
		r.begin(w, r.items[item])
		return
	}
	w.state = ended
	if w.items > 0 && i > 0 {
		r.last = max(r.last, r.now) + r.Handoff
	}
}

// begin makes a thread work on an item.
func (r *replay) begin(w *worker, i Item) {
	w.state, w.left, w.items = working, i.Seconds*r.Slowdown, w.items+1
	if w.read = i.Bytes / w.left; i.Bytes > 1.1*r.Reads[0]*i.Seconds {
		w.read = 0 // it found them in a cache
	}
}
