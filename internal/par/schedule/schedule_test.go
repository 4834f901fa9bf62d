package schedule

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"grove/internal/par"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1e-3, math.Abs(b)) }

// even is a Run of equal items.
func even(n int, seconds, bytes float64) Run {
	r := Run{}
	for range n {
		r.Items = append(r.Items, Item{seconds, bytes})
	}
	return r
}

// TestPredict: the time of Runs that can be computed by hand, and its parts.
func TestPredict(t *testing.T) {
	free := Machine{Slowdown: 1, Reads: []float64{10, 20}}
	long := even(8, 1, 0)
	long.Items[7].Seconds = 5
	tests := []struct {
		name    string
		machine Machine
		step    Step
		threads int
		want    Prediction
	}{
		{"one thread", free, Step{even(8, 1, 0)}, 1, Prediction{Seconds: 8, Items: 8}},
		{"even items", free, Step{even(8, 1, 0), even(16, 0.5, 0)}, 4, Prediction{Seconds: 4, Items: 4}},
		{"serial parts", free, Step{{Before: 3}, even(1, 2, 0), {Before: 1, Items: even(4, 1, 0).Items}}, 4, Prediction{Seconds: 7, Items: 1, Serial: 6}},
		{"an item more than threads", free, Step{even(5, 1, 0)}, 4, Prediction{Seconds: 2, Items: 1.25, Imbalance: 0.75}},
		{"others help", free, Step{long}, 4, Prediction{Seconds: 6, Items: 3, Imbalance: 3}},
		{"half of it from memory", Machine{Slowdown: 1, Reads: []float64{10}, Bandwidth: 20}, Step{even(4, 1, 10)}, 4, Prediction{Seconds: 2, Items: 1, Memory: 1}},
		{"reads grow with threads", free, Step{even(4, 1, 10)}, 4, Prediction{Seconds: 1, Items: 1}},
		{"from a cache", Machine{Slowdown: 1, Reads: []float64{10}, Bandwidth: 20}, Step{even(4, 1, 100)}, 4, Prediction{Seconds: 1, Items: 1}},
		{"a shared clock", Machine{Slowdown: 1.5, Reads: []float64{10}}, Step{even(4, 1, 0)}, 2, Prediction{Seconds: 3, Items: 3}},
		// The last of 4 threads begins after 3 hand-offs, ends a second later, and 2 more tell the caller.
		{"a barrier", Machine{Slowdown: 1, Handoff: 0.1, Reads: []float64{10}}, Step{even(4, 1, 0)}, 4,
			Prediction{Seconds: 1.5, Items: 1, Barriers: 0.35, Imbalance: 0.15}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.machine.Predict(tt.step, tt.threads)
			for _, v := range []struct {
				name      string
				got, want float64
			}{
				{"time", p.Seconds, tt.want.Seconds}, {"items", p.Items, tt.want.Items}, {"memory", p.Memory, tt.want.Memory},
				{"barriers", p.Barriers, tt.want.Barriers}, {"imbalance", p.Imbalance, tt.want.Imbalance}, {"serial", p.Serial, tt.want.Serial},
			} {
				if !near(v.got, v.want) {
					t.Errorf("%s: %v, want %v", v.name, v.got, v.want)
				}
			}
		})
	}
}

// TestBounds: random steps take no less than their items shared evenly, than their longest chain, than memory allows; no longer
// than one thread takes and the barriers; and no part is negative.
func TestBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		m := Machine{Handoff: 1e-3 * rng.Float64(), Claim: 1e-3 * rng.Float64(), Slowdown: 1, Reads: []float64{10, 18}, Bandwidth: 40}
		var s Step
		least, work, bytes, items := 0.0, 0.0, 0.0, 0
		threads := 1 + rng.IntN(64)
		for range 1 + rng.IntN(5) {
			r := Run{Before: rng.Float64()}
			longest := 0.0
			for range rng.IntN(200) {
				i := Item{Seconds: rng.ExpFloat64()}
				i.Bytes = i.Seconds * 10 * rng.Float64()
				r.Items = append(r.Items, i)
				longest, work, bytes = max(longest, i.Seconds), work+i.Seconds, bytes+i.Bytes
			}
			items += len(r.Items)
			least += r.Before + longest
			work += r.Before
			s = append(s, r)
		}
		p := m.Predict(s, threads)
		sum := m.Predict(s, 1).Seconds
		if p.Seconds < least-1e-9 || p.Seconds < sum/float64(threads)-1e-9 || p.Seconds < bytes/m.Read(threads)-1e-9 ||
			p.Seconds > work+m.Handoff*float64(len(s)*(3*threads+5)+items*threads)+m.Claim*float64(items) {
			t.Fatalf("%d threads take %v s; the longest items %v s, one thread %v s, memory %v s", threads, p.Seconds, least, sum, bytes/m.Read(threads))
		}
		for _, part := range []float64{p.Items, p.Memory, p.Barriers, p.Imbalance, p.Serial} {
			if part < -1e-9 {
				t.Fatalf("%d threads: a part is negative: %+v", threads, p)
			}
		}
	}
}

// TestMedian: the median of each time of several traces, with the time before the first Run.
func TestMedian(t *testing.T) {
	trace := func(ms ...int) Step {
		d := func(i int) time.Duration { return time.Duration(ms[i]) * time.Millisecond }
		return Of([]par.TracedRun{
			{Before: time.Hour, Items: []par.TracedItem{{Time: d(0), Bytes: 7}, {Time: d(1)}}},
			{Before: d(2), Items: []par.TracedItem{{Time: d(3)}}},
		}, 1+(d(0)+d(1)+d(2)+d(3)).Seconds())
	}
	s := Median([]Step{trace(1, 20, 3, 4), trace(10, 2, 30, 5), trace(5, 6, 4, 100)})
	want := Step{{1, []Item{{0.005, 7}, {0.006, 0}}}, {0.004, []Item{{0.005, 0}}}}
	for r := range want {
		if !near(s[r].Before, want[r].Before) {
			t.Errorf("Run %d comes after %v s, want %v", r, s[r].Before, want[r].Before)
		}
		for i, item := range want[r].Items {
			if s[r].Items[i] != item {
				t.Errorf("Run %d: item %d is %v, want %v", r, i, s[r].Items[i], item)
			}
		}
	}
}

func TestMeasure(t *testing.T) {
	if handoff, claim := Measure(); !(handoff > 0 && handoff < 1e-2) || claim < 0 || claim > 1e-3 {
		t.Errorf("a cache line passes in %v s, an item is claimed in %v s", handoff, claim)
	}
}

// TestMachineString: what was measured, and what is assumed.
func TestMachineString(t *testing.T) {
	m := Machine{Handoff: 130e-9, Claim: 20e-9, Slowdown: 1.02, Reads: []float64{10e9, 18e9}, Nodes: 1}
	for _, tt := range []struct {
		name string
		set  func()
		want string
	}{
		{"measured", func() {}, "a cache line passes between cores in 130 ns, a thread claims an item in 20 ns, arithmetic takes 1.02"},
		{"reads", func() {}, "threads that read: 2, 18.0 GB/s\n"},
		{"no limit", func() {}, "assumed: each further thread reads 8.0 GB/s more (--bandwidth sets a limit)"},
		{"a limit", func() { m.Bandwidth = 200e9 }, "8.0 GB/s more, up to 200.0 of all"},
		{"nodes", func() { m.Nodes = 2 }, "memory has 2 nodes: "},
	} {
		if tt.set(); !strings.Contains(m.String(), tt.want) {
			t.Errorf("%s: %s\nlacks %q", tt.name, &m, tt.want)
		}
	}
	if read := m.Read(100); read != 200e9 {
		t.Errorf("100 threads read %v bytes a second, want 200e9", read)
	}
}
