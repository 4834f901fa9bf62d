package par

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"
	"weak"
)

// tally counts how often each item ran and checks that no worker index is used twice at once.
type tally struct {
	t     *testing.T
	busy  []atomic.Bool
	times []atomic.Int32
}

func newTally(t *testing.T, threads, n int) *tally {
	return &tally{t: t, busy: make([]atomic.Bool, threads), times: make([]atomic.Int32, n)}
}

func (c *tally) Do(worker, item int) {
	if !c.busy[worker].CompareAndSwap(false, true) {
		c.t.Errorf("worker %d does two items at once", worker)
	}
	c.times[item].Add(1)
	c.busy[worker].Store(false)
}

func (c *tally) check() {
	c.t.Helper()
	for i := range c.times {
		if got := c.times[i].Load(); got != 1 {
			c.t.Fatalf("item %d of %d ran %d times, want once", i, len(c.times), got)
		}
	}
}

func TestRunDoesEveryItemOnce(t *testing.T) {
	for _, threads := range []int{0, 1, 2, 3, 8} {
		t.Run(fmt.Sprint("threads=", threads), func(t *testing.T) {
			p := New(threads)
			defer p.Close()
			for round := range 300 {
				for _, n := range []int{0, 1, 2, 3, 7, 64} {
					c := newTally(t, p.Threads(), n)
					p.Run(n, c)
					c.check()
				}
				if round%100 == 0 {
					time.Sleep(3 * spin) // let the workers fall asleep
				}
			}
		})
	}
}

func TestRunsTakeTurns(t *testing.T) {
	p := New(2)
	defer p.Close()
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 200 {
				c := newTally(t, p.Threads(), 5)
				p.Run(5, c)
				c.check()
			}
		})
	}
	callers.Wait()
}

func TestMoreThreadsThanProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := New(4)
	defer p.Close()
	for range 200 {
		c := newTally(t, p.Threads(), 16)
		p.Run(16, c)
		c.check()
	}
}

// rendezvous needs two threads at once: its two items wait for each other.
type rendezvous struct{ meet sync.WaitGroup }

func (r *rendezvous) Do(_, _ int) {
	r.meet.Done()
	r.meet.Wait()
}

func TestItemsRunAtOnce(t *testing.T) {
	p := New(2)
	defer p.Close()
	for range 50 {
		var r rendezvous
		r.meet.Add(2)
		p.Run(2, &r)
	}
}

// held is items of which the first ends once the others are done: those of its own thread, too.
type held struct{ others sync.WaitGroup }

func (h *held) Do(_, item int) {
	if item > 0 {
		h.others.Done()
		return
	}
	h.others.Wait()
}

func TestThreadsHelp(t *testing.T) {
	for _, threads := range []int{2, 3} {
		p := New(threads)
		defer p.Close()
		for range 50 {
			var h held
			h.others.Add(15)
			p.Run(16, &h)
		}
	}
}

// TestForgets: idle workers drop the last task, which may hold a closed model's cache.
func TestForgets(t *testing.T) {
	p := New(2)
	defer p.Close()
	task := newTally(t, p.Threads(), 4)
	last := weak.Make(task)
	p.Run(4, task)
	for range 100 {
		time.Sleep(spin)
		runtime.GC()
		if last.Value() == nil {
			return
		}
	}
	t.Error("the pool holds a task that it ran long ago")
}

func TestManyItems(t *testing.T) {
	for _, n := range []int{maxClaims - 1, maxClaims, maxClaims + 1, 5*maxClaims + 7} {
		p := New(2)
		defer p.Close()
		c := newTally(t, p.Threads(), n)
		p.Run(n, c)
		c.check()
	}
}

// slow keeps the other thread, which waits for it, long enough to fall asleep.
type slow struct{ item int }

func (s slow) Do(_, item int) {
	if item == s.item {
		time.Sleep(4 * spin)
	}
}

func TestSleepersWake(t *testing.T) {
	p := New(2)
	defer p.Close()
	for round := range 40 {
		p.Run(2, slow{item: round % 2})
	}
}

type bomb struct {
	*tally
	item int
}

func (b bomb) Do(worker, item int) {
	b.tally.Do(worker, item)
	if item == b.item {
		panic(fmt.Sprint("item ", item))
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	for _, threads := range []int{1, 2, 4} {
		p := New(threads)
		defer p.Close()
		for item := range 20 {
			c := newTally(t, p.Threads(), 20)
			got := func() (value any) {
				defer func() { value = recover() }()
				p.Run(20, bomb{c, item})
				return nil
			}()
			if want := fmt.Sprint("item ", item); got != want {
				t.Fatalf("threads %d: Run panicked with %v, want %q", threads, got, want)
			}
			after := newTally(t, p.Threads(), 20)
			p.Run(20, after)
			after.check()
		}
	}
}

// TestIdle asks whether a pool did nothing: while it works, behind its work, and twice in a row.
func TestIdle(t *testing.T) {
	for _, threads := range []int{1, 2} {
		p := New(threads)
		defer p.Close()
		idle := p.Idle()
		got := []bool{idle(), idle()}
		p.Run(1, during(func() { got = append(got, idle(), idle()) }))
		got = append(got, idle(), idle())
		p.Run(3, during(func() {}))
		got = append(got, idle(), idle())
		if want := []bool{false, true, false, false, false, true, false, true}; !slices.Equal(got, want) {
			t.Errorf("%d threads: got %v, want %v", threads, got, want)
		}
	}
}

// during is a task that calls a function for each item.
type during func()

func (f during) Do(int, int) { f() }

func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		p := New(4)
		p.Run(8, newTally(t, 4, 8))
		p.Close()
		p.Close()
		c := newTally(t, 1, 8)
		p.Run(8, c)
		c.check()
	}
	// A goroutine that has told Close that it is done may take a moment to be gone.
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after Close", before, runtime.NumGoroutine())
}

type empty struct{}

func (*empty) Do(_, _ int) {}

func TestRunAllocatesNothing(t *testing.T) {
	p := New(2)
	defer p.Close()
	task := new(empty)
	if got := testing.AllocsPerRun(1000, func() { p.Run(4, task) }); got != 0 {
		t.Errorf("Run allocates %v times, want 0", got)
	}
}

func TestCgroupLimit(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	const v1 = "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:cpuset:/docker/x\n"
	tests := []struct {
		name string
		root fstest.MapFS
		want int // 0: no quota
	}{
		{"no control groups", fstest.MapFS{}, 0},
		{"v2 without limit", fstest.MapFS{
			"proc/self/cgroup":      file("0::/\n"),
			"sys/fs/cgroup/cpu.max": file("max 100000\n"),
		}, 0},
		{"v2 exactly two", fstest.MapFS{
			"proc/self/cgroup":      file("0::/\n"),
			"sys/fs/cgroup/cpu.max": file("200000 100000\n"),
		}, 2},
		{"v2 a half counts as one", fstest.MapFS{
			"proc/self/cgroup":      file("0::/\n"),
			"sys/fs/cgroup/cpu.max": file("50000 100000\n"),
		}, 1},
		{"v2 parent is tighter", fstest.MapFS{
			"proc/self/cgroup":              file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/cpu.max":     file("800000 100000\n"),
			"sys/fs/cgroup/a/cpu.max":       file("250000 100000\n"),
			"sys/fs/cgroup/other/b/cpu.max": file("100000 100000\n"),
		}, 3},
		{"v2 path of the host", fstest.MapFS{
			"proc/self/cgroup":      file("0::/../../kubepods/pod1\n"),
			"sys/fs/cgroup/cpu.max": file("400000 100000\n"),
		}, 4},
		{"v1", fstest.MapFS{
			"proc/self/cgroup": file(v1),
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us":  file("150000\n"),
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us": file("100000\n"),
		}, 2},
		{"v1 without limit", fstest.MapFS{
			"proc/self/cgroup":                            file(v1),
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":  file("-1\n"),
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": file("100000\n"),
		}, 0},
		{"v2 set of processors", fstest.MapFS{
			"proc/self/cgroup":                          file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/cpuset.cpus.effective":   file("0-1,4,6-7\n"),
			"sys/fs/cgroup/a/cpuset.cpus.effective":     file("0-7\n"),
			"sys/fs/cgroup/a/b/cpu.max":                 file("max 100000\n"),
			"sys/fs/cgroup/cpuset.cpus.effective":       file("0-63\n"),
			"sys/fs/cgroup/a/b/c/cpuset.cpus.effective": file("0\n"),
		}, 5},
		{"v2 quota below the set", fstest.MapFS{
			"proc/self/cgroup":                      file("0::/a\n"),
			"sys/fs/cgroup/a/cpuset.cpus.effective": file("0-7\n"),
			"sys/fs/cgroup/a/cpu.max":               file("300000 100000\n"),
		}, 3},
		{"v2 empty set, set of the parent", fstest.MapFS{
			"proc/self/cgroup":                      file("0::/a\n"),
			"sys/fs/cgroup/a/cpuset.cpus.effective": file("\n"),
			"sys/fs/cgroup/cpuset.cpus.effective":   file("3\n"),
		}, 1},
		{"v1 set of processors", fstest.MapFS{
			"proc/self/cgroup":                                     file(v1),
			"sys/fs/cgroup/cpuset/docker/x/cpuset.cpus":            file("0-15\n"),
			"sys/fs/cgroup/cpuset/docker/x/cpuset.effective_cpus":  file("0-5\n"),
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us":  file("750000\n"),
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us": file("100000\n"),
		}, 6},
		{"v1 and v2 at once", fstest.MapFS{
			"proc/self/cgroup":                          file("0::/x\n" + v1),
			"sys/fs/cgroup/cpuset/docker/x/cpuset.cpus": file("0-3\n"),
			"sys/fs/cgroup/x/cpu.max":                   file("200000 100000\n"),
		}, 2},
		{"sets that are no lists", fstest.MapFS{
			"proc/self/cgroup":                          file("0::/a/b/c\n"),
			"sys/fs/cgroup/a/b/c/cpuset.cpus.effective": file("4-2\n"),
			"sys/fs/cgroup/a/b/cpuset.cpus.effective":   file("1,x\n"),
			"sys/fs/cgroup/a/cpuset.cpus.effective":     file("0-\n"),
		}, 0},
		{"nonsense", fstest.MapFS{
			"proc/self/cgroup":      file("0\n::\n0::/x\n"),
			"sys/fs/cgroup/cpu.max": file("lots of it"),
		}, 0},
		{"zero period", fstest.MapFS{
			"proc/self/cgroup":      file("0::/\n"),
			"sys/fs/cgroup/cpu.max": file("100000 0\n"),
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := cgroupLimit(tt.root)
			if got != tt.want || ok != (tt.want > 0) {
				t.Errorf("cgroupLimit = %d, %v, want %d", got, ok, tt.want)
			}
		})
	}
}

func TestThreads(t *testing.T) {
	if got := Threads(); got < 1 || got > runtime.NumCPU() {
		t.Errorf("Threads() = %d, want 1 to %d", got, runtime.NumCPU())
	}
}

// chain is a task whose items take some time: multiplications that wait for each other.
type chain struct {
	length int
	ends   [8]struct {
		value uint64
		_     [120]byte
	}
}

func (c *chain) Do(worker, _ int) {
	v := uint64(worker)
	for range c.length {
		v = v*6364136223846793005 + 1
	}
	c.ends[worker].value = v
}

// BenchmarkRun is the cost of a Run of four items a thread, which are as long as those of a small step, or empty.
func BenchmarkRun(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, length := range []int{0, 200, 1000} {
			b.Run(fmt.Sprintf("threads=%d/length=%d", threads, length), func(b *testing.B) {
				p := New(threads)
				defer p.Close()
				task := &chain{length: length}
				b.ReportAllocs()
				for b.Loop() {
					p.Run(8, task)
				}
			})
		}
	}
}

// BenchmarkRunAsleep is the cost of a Run that finds the workers asleep.
func BenchmarkRunAsleep(b *testing.B) {
	p := New(2)
	defer p.Close()
	task := new(empty)
	for b.Loop() {
		b.StopTimer()
		time.Sleep(5 * spin)
		b.StartTimer()
		p.Run(2, task)
	}
}

// read is a task that does nothing but read.
type read struct{ empty }

func (*read) Bytes(item int) int { return 10 * item }

// TestTrace: a traced pool does every item in turn, and records it with its bytes where the task knows them.
func TestTrace(t *testing.T) {
	p, trace := NewTraced(5)
	defer p.Close()
	if p.Threads() != 5 {
		t.Errorf("%d threads, want 5", p.Threads())
	}
	for range 2 {
		trace.Reset()
		c := newTally(t, 1, 7)
		time.Sleep(time.Millisecond)
		p.Run(7, c)
		c.check()
		p.Run(0, c)
		p.Run(3, new(read))
		p.Run(1, during(func() { time.Sleep(time.Millisecond) }))
		var items, bytes []int
		for _, r := range trace.Runs {
			items = append(items, len(r.Items))
			for _, i := range r.Items {
				bytes = append(bytes, i.Bytes)
			}
		}
		if !slices.Equal(items, []int{7, 0, 3, 1}) || !slices.Equal(bytes, []int{0, 0, 0, 0, 0, 0, 0, 0, 10, 20, 0}) {
			t.Errorf("Runs of %v items, of %v bytes", items, bytes)
		}
		if d := trace.Runs[0].Before; d < time.Millisecond || d > time.Minute {
			t.Errorf("the first Run came after %v", d)
		}
		if d := trace.Runs[3].Items[0].Time; d < time.Millisecond || d > time.Minute {
			t.Errorf("an item of a millisecond took %v", d)
		}
	}
}
