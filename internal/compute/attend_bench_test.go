package compute

import (
	"context"
	"fmt"
	"testing"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kv"
	"grove/internal/machine"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// BenchmarkAttend times the attention of a step at a depth: 24 layers of 20 heads that share 5 keys and
// values of 64, as in the synthetic model 0.5b. MB/s are those of the cache, read once; G/s are multiply-adds, of which
// "peak" is the most of float32.
func BenchmarkAttend(b *testing.B) {
	const layers, heads, kvHeads, size, depth = 24, 20, 5, 64, 4032
	pool := par.New(par.Threads())
	defer pool.Close()
	b.Run("reads", func(b *testing.B) {
		t := &readTask{data: make([]byte, 128<<20), sums: make([]uint64, pool.Threads()*8)}
		machine.HugePages(t.data)
		for i := range t.data {
			t.data[i] = byte(i)
		}
		b.SetBytes(int64(len(t.data)))
		for b.Loop() {
			pool.Run(len(t.data)/readItem, t)
		}
	})
	b.Run("peak", func(b *testing.B) {
		done := make(peakTask, pool.Threads()*8)
		for b.Loop() {
			pool.Run(pool.Threads(), done)
		}
		multiplyAdds(b, pool.Threads()*done[0])
	})
	for _, typ := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
		config := kv.Config{Type: typ, Context: 4608, Tokens: 4608, Seqs: 1, Scratch: 512}
		for range layers {
			config.Layers = append(config.Layers, kv.Layer{KVHeads: kvHeads, KeySize: size})
		}
		cache, err := kv.New(config)
		if err != nil {
			b.Fatal(err)
		}
		s := cache.NewSeq("")
		if err := cache.Pad(s, depth); err != nil {
			b.Fatal(err)
		}
		x := NewExec(cache, pool, size, config.Scratch)
		for _, rows := range []int{1, 2, 4, 8, 32, 512} {
			b.Run(fmt.Sprintf("type=%v/rows=%d", typ, rows), func(b *testing.B) {
				f := cache.Format
				b.SetBytes(int64(layers * kvHeads * (f.KeyBytes(size) + f.ValueBytes(size)) * depth / kv.PageTokens))
				b.ReportAllocs()
				for b.Loop() {
					parent := forest.Trunk
					for range rows {
						if parent, err = x.Step.Add(forest.Row{Seq: s, Parent: parent}); err != nil {
							b.Fatal(err)
						}
					}
					attendOnly(b, x, rows, layers, heads, kvHeads, size)
				}
				multiplyAdds(b, layers*heads*size*2*rows*(depth+(rows+1)/2))
			})
		}
	}
}

// multiplyAdds reports the rate of a benchmark whose turn has n of them.
func multiplyAdds(b *testing.B, n int) {
	b.ReportMetric(float64(n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "G/s")
}

// peakTask multiplies and adds as fast as threads can, and counts.
type peakTask []int

func (t peakTask) Do(worker, _ int) { t[worker*8] = kernel.Peak(kernel.PeakFloat, 1<<18) }

// readTask reads memory as fast as threads can, the measure of one row.
type readTask struct {
	data []byte
	sums []uint64
}

const readItem = 1 << 20

func (t *readTask) Do(worker, item int) {
	t.sums[worker*8] += kernel.StreamRead(t.data[item*readItem:][:readItem])
}

// BenchmarkAttendShared times the attention of a step with a row for each of eight sequences behind 2,000 tokens: the same
// pages, and pages of their own.
func BenchmarkAttendShared(b *testing.B) {
	const layers, heads, kvHeads, size, depth, seqs = 6, 20, 5, 64, 2000, 8
	pool := par.New(par.Threads())
	defer pool.Close()
	for _, typ := range []tensor.Type{tensor.F16, tensor.Q8_0} {
		for _, pages := range []string{"shared", "own"} {
			config := kv.Config{Type: typ, Context: 4096, Tokens: seqs * depth, Seqs: seqs, Scratch: 64}
			for range layers {
				config.Layers = append(config.Layers, kv.Layer{KVHeads: kvHeads, KeySize: size})
			}
			cache, err := kv.New(config)
			if err != nil {
				b.Fatal(err)
			}
			all := []forest.Seq{cache.NewSeq("")}
			if err := cache.Pad(all[0], depth); err != nil {
				b.Fatal(err)
			}
			for len(all) < seqs {
				s := forest.Seq(0)
				if pages == "shared" {
					s, err = cache.Fork(all[0], forest.Trunk)
				} else {
					s = cache.NewSeq("")
					err = cache.Pad(s, depth)
				}
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, s)
			}
			x := NewExec(cache, pool, size, config.Scratch)
			b.Run(fmt.Sprintf("type=%v/pages=%s", typ, pages), func(b *testing.B) {
				for b.Loop() {
					for _, s := range all {
						if _, err := x.Step.Add(forest.Row{Seq: s}); err != nil {
							b.Fatal(err)
						}
					}
					attendOnly(b, x, seqs, layers, heads, kvHeads, size)
				}
			})
		}
	}
}

// attendOnly runs a step of nothing but attention, and forgets it.
func attendOnly(b *testing.B, x *Exec, rows, layers, heads, kvHeads, size int) {
	err := x.Run(context.Background(), func(x *Exec) {
		for l := range layers {
			x.Enter(l)
			q, k, v := x.alloc(rows, heads*size), x.alloc(rows, kvHeads*size), x.alloc(rows, kvHeads*size)
			for i := range q.f {
				q.f[i] = float32(i%7) - 3
			}
			x.Attend(Attention{Layer: l, Heads: heads, Scale: 0.125}, q, k, v)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	x.Step.Abort()
}
