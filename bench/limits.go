package bench

import (
	"sync/atomic"
	"time"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/machine"
	"grove/internal/par"
	"grove/weights/tensor"
)

// limits measures what the machine can do with a pool's threads, in the turns of a run.
type limits struct {
	pool  *par.Pool
	data  []byte
	kind  kernel.PeakKind
	sums  []atomic.Uint64 // by worker: keeps the reads
	read  sample          // seconds to read data
	peaks sample          // seconds of a multiply-add
}

// maxRead bounds the bytes that a read loop goes through: more than any cache holds.
const maxRead = 512 << 20

func newLimits(pool *par.Pool, bytes int, t tensor.Type) *limits {
	l := &limits{pool: pool, kind: peakOf(t), sums: make([]atomic.Uint64, pool.Threads())}
	l.data = make([]byte, max(readItem, min(bytes, maxRead)/readItem*readItem))
	machine.HugePages(l.data)
	for i := range l.data {
		l.data[i] = byte(i)
	}
	return l
}

// peakOf returns the multiply-add that products with a weight type are made of.
func peakOf(t tensor.Type) kernel.PeakKind {
	if f, ok := matmul.FormatOf(t); ok {
		return f.Peak()
	}
	return kernel.PeakFloat // no product is measured
}

const readItem = 256 << 10

// Do reads one stretch of the data.
func (l *limits) Do(worker, item int) {
	l.sums[worker].Add(kernel.StreamRead(l.data[item*readItem : (item+1)*readItem]))
}

// turn measures both once.
func (l *limits) turn() {
	start := time.Now()
	l.pool.Run(len(l.data)/readItem, l)
	l.read = append(l.read, time.Since(start).Seconds())
	p := peakTask{kind: l.kind}
	start = time.Now()
	l.pool.Run(l.pool.Threads()*8, &p)
	l.peaks = append(l.peaks, time.Since(start).Seconds()/float64(p.done.Load()))
}

// bandwidth returns the bytes that the threads read a second.
func (l *limits) bandwidth() float64 { return float64(len(l.data)) / l.read.median() }

// rate returns the multiply-adds that the threads do a second.
func (l *limits) rate() float64 { return 1 / l.peaks.median() }

// peakTask is multiply-adds in registers.
type peakTask struct {
	kind kernel.PeakKind
	done atomic.Int64
}

// peakRounds makes an item of about a millisecond.
const peakRounds = 100_000

// Do runs one item.
func (p *peakTask) Do(_, _ int) { p.done.Add(int64(kernel.Peak(p.kind, peakRounds))) }
