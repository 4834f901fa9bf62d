package schedule

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"grove/internal/par"
)

// empty is a task that does nothing.
type empty struct{}

func (*empty) Do(int, int) {}

// meeting is a task of two items that wait for each other.
type meeting struct{ came atomic.Int64 }

func (m *meeting) Do(int, int) {
	all := (m.came.Add(1) + 1) &^ 1
	for n := 0; m.came.Load() < all; n++ {
		if n > 1000 {
			runtime.Gosched() // the other one has no processor yet
		}
	}
}

// Measure returns the cost of a barrier, measured with two threads.
func Measure() (handoff, claim float64) {
	const items = 4000
	pool := par.New(2)
	defer pool.Close()
	// The cache lines of a meeting pass five times: of the Run's beginning, of the two who came, of its end, and back.
	handoff = typical(pool, 2, new(meeting)) / 5
	return handoff, typical(pool, items, new(empty)) / (items / 2)
}

// typical returns the seconds of a Run that nothing else held up: the first quarter of many, in the best of some rounds.
func typical(pool *par.Pool, items int, task par.Task) float64 {
	seconds := make([]float64, 0, 100)
	best := math.Inf(1)
	for range 10 {
		for seconds = seconds[:0]; len(seconds) < cap(seconds); {
			start := time.Now()
			pool.Run(items, task)
			seconds = append(seconds, time.Since(start).Seconds())
		}
		slices.Sort(seconds)
		best = min(best, seconds[len(seconds)/4])
		time.Sleep(5 * time.Millisecond) // what else runs may end
	}
	return best
}
