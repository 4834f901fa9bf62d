// Package schedule predicts how long a step takes on any number of threads: it replays the times that its items took one
// by one (package par's Trace) by the rule by which a pool's threads claim them.
package schedule

import (
	"fmt"
	"slices"
	"strings"

	"grove/internal/par"
)

// Step is the Runs of a step.
type Step []Run

// Run is one Run of a pool: the serial time before it, and its items.
type Run struct {
	Before float64 // seconds
	Items  []Item
}

// Item is one item of a Run.
type Item struct {
	Seconds float64 // alone
	Bytes   float64 // of memory that it reads; 0: few, or not known
}

// Machine has the resources that the threads share.
type Machine struct {
	// Handoff is the seconds in which a cache line passes from one core to another. A line that several cores want
	// passes from one to the next.
	Handoff float64 `json:"handoff_seconds"`
	// Claim is the seconds in which a thread claims and begins an item of its own share.
	Claim float64 `json:"claim_seconds"`
	// Slowdown is the time of arithmetic beside another thread over its time alone: cores share a clock, or are parts of a
	// core.
	Slowdown float64 `json:"slowdown"`
	// Reads is the bytes a second that 1, 2, ... threads read from memory. Each further thread is taken to add what the last one
	// added.
	Reads []float64 `json:"reads"`
	// Bandwidth is the most that all threads read in a second, in bytes; 0: there is no such limit.
	Bandwidth float64 `json:"bandwidth,omitempty"`
	// Nodes is the number of the memory's nodes here. Predictions take all memory to be equally near.
	Nodes int `json:"nodes"`
}

// Read returns the bytes a second that some threads read together.
func (m *Machine) Read(threads int) float64 {
	known := len(m.Reads)
	read := m.Reads[min(threads, known)-1]
	if threads > known {
		read += float64(threads-known) * m.More()
	}
	if m.Bandwidth > 0 {
		read = min(read, m.Bandwidth)
	}
	return read
}

// More returns the bytes a second that a thread adds to those that were measured.
func (m *Machine) More() float64 {
	last := len(m.Reads) - 1
	if last == 0 {
		return m.Reads[0]
	}
	return max(0, m.Reads[last]-m.Reads[last-1])
}

// String says what was measured, and what is assumed of more threads.
func (m *Machine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "measured here: a cache line passes between cores in %.0f ns, a thread claims an item in %.0f ns, arithmetic takes %.2f of its time beside another thread\n",
		1e9*m.Handoff, 1e9*m.Claim, m.Slowdown)
	for i, read := range m.Reads {
		fmt.Fprintf(&b, "threads that read: %d, %.1f GB/s\n", i+1, read/1e9)
	}
	fmt.Fprintf(&b, "assumed: each further thread reads %.1f GB/s more", m.More()/1e9)
	if m.Bandwidth > 0 {
		fmt.Fprintf(&b, ", up to %.1f of all", m.Bandwidth/1e9)
	} else {
		b.WriteString(" (--bandwidth sets a limit)")
	}
	if m.Nodes > 1 {
		fmt.Fprintf(&b, "\nmemory has %d nodes: weights lie in those of the threads that packed them, by chance, and threads may move;\n"+
			"numactl --interleave=all spreads pages evenly, and --cpunodebind with --membind keeps a process to one node", m.Nodes)
	}
	return b.String()
}

// Bound names what most of a step's time goes to. The time of items goes to memory where they read most of what it gives.
func (m *Machine) Bound(p Prediction) string {
	const most = 0.7 // of the bandwidth
	bound, longest := "arithmetic", p.Items
	if p.Memory > p.Items || p.Bytes > most*m.Read(p.Threads)*(p.Items+p.Memory) {
		bound, longest = "memory", p.Items+p.Memory
	}
	for name, seconds := range map[string]float64{"barriers": p.Barriers, "imbalance": p.Imbalance, "serial parts": p.Serial} {
		if seconds > longest {
			bound, longest = name, seconds
		}
	}
	return bound
}

// A Prediction is the time of a step, and its parts: their sum is Seconds.
type Prediction struct {
	Threads   int     `json:"threads"`
	Seconds   float64 `json:"seconds"`
	Items     float64 `json:"items_seconds"`     // what the items take, shared evenly
	Memory    float64 `json:"memory_seconds"`    // what they take longer, as all threads read
	Barriers  float64 `json:"barriers_seconds"`  // beginning and ending Runs, claiming items
	Imbalance float64 `json:"imbalance_seconds"` // waiting for the threads that are last
	Serial    float64 `json:"serial_seconds"`    // between Runs, and Runs of one item
	Bytes     float64 `json:"bytes"`             // that the items read
}

// Of returns the step of a trace that took so many seconds: what its Runs leave of them came before the first.
func Of(runs []par.TracedRun, seconds float64) Step {
	s := make(Step, len(runs))
	for i, r := range runs {
		s[i].Before = r.Before.Seconds()
		for _, item := range r.Items {
			s[i].Items = append(s[i].Items, Item{item.Time.Seconds(), float64(item.Bytes)})
		}
		seconds -= total(s[i].Items)
		if i > 0 {
			seconds -= s[i].Before
		}
	}
	if len(s) > 0 {
		s[0].Before = max(0, seconds)
	}
	return s
}

// Median returns the step of the median of each time, of steps with the same items. It changes their first one.
func Median(steps []Step) Step {
	var times []float64
	median := func(of func(Step) *float64) {
		times = times[:0]
		for _, s := range steps {
			times = append(times, *of(s))
		}
		slices.Sort(times)
		*of(steps[0]) = times[len(times)/2]
	}
	for r := range steps[0] {
		median(func(s Step) *float64 { return &s[r].Before })
		for i := range steps[0][r].Items {
			median(func(s Step) *float64 { return &s[r].Items[i].Seconds })
		}
	}
	return steps[0]
}

// Predict replays a step, whose items were cut for so many threads.
func (m *Machine) Predict(s Step, threads int) Prediction {
	p := Prediction{Threads: threads}
	for _, r := range s {
		p.Serial += r.Before
		for _, i := range r.Items {
			p.Bytes += i.Bytes
		}
		switch {
		case threads == 1:
			p.Items += total(r.Items)
		case len(r.Items) <= 1:
			p.Serial += total(r.Items)
		default:
			m.replay(&p, r.Items)
		}
	}
	p.Seconds = p.Items + p.Memory + p.Barriers + p.Imbalance + p.Serial
	return p
}

func total(items []Item) (sum float64) {
	for _, i := range items {
		sum += i.Seconds
	}
	return sum
}
