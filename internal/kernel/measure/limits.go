// Package measure times what kernels are compared with: reads of memory, multiply-adds in registers, and products of one
// matrix. Package bench turns the times into figures.
package measure

import (
	"sync/atomic"
	"time"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/machine"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// Limits measures how fast the threads of a pool can read memory, and multiply and add. It is for one goroutine.
type Limits struct {
	pool *par.Pool
	data []byte
	kind kernel.PeakKind
	sums []atomic.Uint64 // by worker: the results of reads, so that no compiler leaves the reads out
}

// maxRead bounds the bytes that one read covers. No cache holds as many.
const maxRead = 512 << 20

// readItem is the number of bytes that a thread reads at a time.
const readItem = 256 << 10

// NewLimits returns the limits for products with a weight type. A read covers about the given number of bytes, at least
// 256 KiB and at most 512 MiB.
func NewLimits(pool *par.Pool, bytes int, t tensor.Type) *Limits {
	l := &Limits{pool: pool, kind: peakOf(t), sums: make([]atomic.Uint64, pool.Threads())}
	l.data = make([]byte, max(readItem, min(bytes, maxRead)/readItem*readItem))
	machine.HugePages(l.data)
	for i := range readItem {
		l.data[i] = byte(i)
	}
	for n := readItem; n < len(l.data); {
		n += copy(l.data[n:], l.data[:readItem])
	}
	return l
}

// peakOf returns the multiply-add that products with a weight type use.
func peakOf(t tensor.Type) kernel.PeakKind {
	if f, ok := matmul.FormatOf(t); ok {
		return f.Peak()
	}
	return kernel.PeakFloat // no product is measured
}

// Bytes returns the number of bytes that [Limits.Read] reads.
func (l *Limits) Bytes() int { return len(l.data) }

// Read reads all bytes once and returns the seconds that it took.
func (l *Limits) Read() float64 {
	start := time.Now()
	l.pool.Run(len(l.data)/readItem, l)
	return time.Since(start).Seconds()
}

// Do implements [par.Task] for [Limits.Read].
func (l *Limits) Do(worker, item int) {
	l.sums[worker].Add(kernel.StreamRead(l.data[item*readItem : (item+1)*readItem]))
}

// MultiplyAdd returns the seconds of one multiply-add in registers: the time of many, divided by their number.
func (l *Limits) MultiplyAdd() float64 {
	p := peakTask{kind: l.kind}
	start := time.Now()
	l.pool.Run(l.pool.Threads()*8, &p)
	return time.Since(start).Seconds() / float64(p.done.Load())
}

// peakTask multiplies and adds in registers.
type peakTask struct {
	kind kernel.PeakKind
	done atomic.Int64
}

// peakRounds makes an item take about a millisecond.
const peakRounds = 100_000

// Do runs one item.
func (p *peakTask) Do(_, _ int) { p.done.Add(int64(kernel.Peak(p.kind, peakRounds))) }
