//go:build unix

package par

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// These tests run more threads than there are processors.

// crowd is the threads of the tests.
const crowd = 16

// enough bounds what takes milliseconds where no thread starves.
const enough = 60 * time.Second

// cpuTime returns how long the process has kept processors busy.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// work is a task of items that compute for some microseconds, and counts them by worker.
type work struct {
	items [crowd]atomic.Int64
	sink  atomic.Int64
}

func (w *work) Do(worker, item int) {
	sum := item
	for i := range 5000 {
		sum += i * sum
	}
	w.sink.Add(int64(sum))
	w.items[worker].Add(1)
}

// all returns the number of items.
func (w *work) all() (n int64) {
	for i := range w.items {
		n += w.items[i].Load()
	}
	return n
}

// within fails the test where f takes longer than any starvation may explain.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(enough):
		buf := make([]byte, 1<<20)
		t.Fatalf("no end after %v:\n%s", enough, buf[:runtime.Stack(buf, true)])
	}
}

// sleepers is a task whose items leave the processor to others.
type sleepers struct{ work }

func (s *sleepers) Do(worker, _ int) {
	time.Sleep(2 * time.Millisecond)
	s.items[worker].Add(1)
}

// TestEveryThreadWorks: the caller and every worker do items, whatever the number of processors.
func TestEveryThreadWorks(t *testing.T) {
	p := New(crowd)
	defer p.Close()
	s := new(sleepers)
	time.Sleep(20 * spin) // they sleep
	within(t, func() { p.Run(crowd*5, s) })
	for worker := range s.items {
		if s.items[worker].Load() == 0 {
			t.Errorf("worker %d of %d has done nothing", worker, crowd)
		}
	}
	if s.all() != crowd*5 {
		t.Errorf("%d items, want %d", s.all(), crowd*5)
	}
}

// TestPoolsShareProcessors: two pools that both have more threads than there are processors, at once. Neither waits for the other to end.
func TestPoolsShareProcessors(t *testing.T) {
	const runs = 300
	var tasks [2]work
	var behind [2]int64 // items of the other pool when one has ended
	var callers sync.WaitGroup
	within(t, func() {
		for i := range tasks {
			callers.Go(func() {
				p := New(crowd)
				defer p.Close()
				for range runs {
					p.Run(2*crowd, &tasks[i])
				}
				behind[i] = tasks[1-i].all()
			})
		}
		callers.Wait()
	})
	for i := range tasks {
		if n := tasks[i].all(); n != runs*2*crowd {
			t.Errorf("pool %d: %d items, want %d", i, n, runs*2*crowd)
		}
		if behind[i] < runs*2*crowd/20 {
			t.Errorf("pool %d had done %d of %d items when the other one ended", 1-i, behind[i], runs*2*crowd)
		}
	}
}

// TestBusyNeighbour: a process that keeps all processors busy delays Runs, and does not stop them.
func TestBusyNeighbour(t *testing.T) {
	if os.Getenv("GROVE_TEST_SPIN") != "" {
		var end atomic.Bool
		for range runtime.NumCPU() {
			go func() {
				for !end.Load() {
				}
			}()
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent closes it, or ends
		os.Exit(0)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestBusyNeighbour$")
	cmd.Env = append(os.Environ(), "GROVE_TEST_SPIN=1")
	life, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer life.Close()
	p := New(crowd)
	defer p.Close()
	w := new(work)
	within(t, func() {
		for range 300 {
			p.Run(2*crowd, w)
		}
	})
	if w.all() != 300*2*crowd {
		t.Errorf("%d items, want %d", w.all(), 300*2*crowd)
	}
}

// TestIdleThreadsSleep: threads that wait take no processor, neither between Runs nor while one item is slow. Spinning, they would
// keep all processors busy.
func TestIdleThreadsSleep(t *testing.T) {
	const pause = 150 * time.Millisecond
	for _, threads := range []int{2, crowd} {
		p := New(threads)
		defer p.Close()
		p.Run(2*threads, new(work))
		waits := map[string]func(){
			"between Runs":      func() { time.Sleep(pause) },
			"for a slow item":   func() { p.Run(threads, slowly{pause, 0}) },
			"for a slow worker": func() { p.Run(threads, slowly{pause, 1}) },
		}
		for name, wait := range waits {
			least := pause // a neighbour in this process, such as the collector, may be busy once
			for try := 0; try < 5 && least > pause/4; try++ {
				before := cpuTime(t)
				wait()
				least = min(least, cpuTime(t)-before)
			}
			if least > pause/4 {
				t.Errorf("%d threads that wait %s: %v of %v on processors", threads, name, least, pause)
			}
		}
	}
}

// slowly is a task of which one item sleeps.
type slowly struct {
	time time.Duration
	item int
}

func (s slowly) Do(_, item int) {
	if item == s.item {
		time.Sleep(s.time)
	}
}
