package modeltest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kv"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// half is a Llama of half a billion parameters.
func half(b *testing.B, t tensor.Type) Spec {
	s, err := synthetic.Named("0.5b", t)
	if err != nil {
		b.Fatal(err)
	}
	return Spec(s)
}

// BenchmarkDecode decodes one row a step, and reports its bytes per second as a share of those of a loop that reads as
// many bytes in the same run. A step allocates nothing.
func BenchmarkDecode(b *testing.B) {
	for _, t := range []tensor.Type{tensor.Q8_0, tensor.F16} {
		b.Run("type="+t.String(), func(b *testing.B) {
			r := New(b, half(b, t).File(b), Config{CacheType: tensor.F16, Threads: par.Threads(), Seqs: 1, Context: 4096})
			s := r.NewSeq("")
			step := func() {
				n := r.Add(forest.Row{Seq: s, ID: 7, Want: logits})
				r.Forward()
				r.Commit(s, n)
				if r.Cache.Forest.Len(s) == 2*kv.PageTokens {
					r.check(r.Cache.Truncate(s, kv.PageTokens))
				}
			}
			for range kv.PageTokens + 2 {
				step()
			}
			read := r.Model.Info().Bytes - tableBytes(t) // the embedding table is looked up, not read
			loop := newReadLoop(read)
			var plain, steps time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				step()
				middle := time.Now()
				loop.run()
				steps, plain = steps+middle.Sub(start), plain+time.Since(middle)
			}
			gb := float64(read) * float64(b.N) / 1e9
			b.ReportMetric(float64(b.N)/steps.Seconds(), "tok/s")
			b.ReportMetric(gb/steps.Seconds(), "GB/s")
			b.ReportMetric(gb/plain.Seconds(), "loop-GB/s")
			b.ReportMetric(100*plain.Seconds()/steps.Seconds(), "%loop")
		})
	}
}

func tableBytes(t tensor.Type) int {
	n, _ := t.RowBytes(32000 * 1280)
	return n
}

// readLoop reads bytes with all threads and does nothing else.
type readLoop struct {
	pool *par.Pool
	data []byte
	sums []uint64
}

const readChunk = 1 << 20

func newReadLoop(n int) *readLoop {
	l := &readLoop{pool: par.New(par.Threads()), data: make([]byte, n), sums: make([]uint64, par.Threads())}
	for i := range l.data {
		l.data[i] = byte(i)
	}
	return l
}

func (l *readLoop) run() { l.pool.Run(len(l.data)/readChunk, l) }

// Do implements [par.Task].
func (l *readLoop) Do(worker, item int) {
	l.sums[worker] += kernel.StreamRead(l.data[item*readChunk : (item+1)*readChunk])
}

// BenchmarkStep runs steps of several sizes, all rows with logits: the curve T(n).
func BenchmarkStep(b *testing.B) {
	for _, t := range []tensor.Type{tensor.Q8_0, tensor.F16, tensor.Q4_0, tensor.Q4_K} {
		var file *gguf.File
		for _, rows := range []int{1, 2, 4, 8, 16, 64, 512} {
			b.Run(fmt.Sprintf("type=%v/rows=%d", t, rows), func(b *testing.B) {
				if file == nil {
					file = half(b, t).File(b)
				}
				r := New(b, file, Config{CacheType: tensor.F16, Threads: par.Threads(), Seqs: 1, Context: 4096, Scratch: 512})
				s := r.NewSeq("")
				step := func() {
					var parent forest.Node
					for i := range rows {
						parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: token.ID(i), Want: logits})
					}
					r.Forward()
					r.Drop(s, forest.Trunk)
				}
				step()
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
				b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkTrim alternates steps with the whole head and with a quarter of it, as a draft model with a trimmed
// vocabulary runs them, and reports the median time of each.
func BenchmarkTrim(b *testing.B) {
	for _, vocabulary := range []int{32000, 128256} {
		b.Run(fmt.Sprintf("vocabulary=%d", vocabulary), func(b *testing.B) {
			spec := half(b, tensor.Q8_0)
			spec.Vocab, spec.Tied = vocabulary, true
			r := New(b, spec.File(b), Config{CacheType: tensor.F16, Threads: par.Threads(), Seqs: 1, Context: 4096})
			s := r.NewSeq("")
			var subset []int32 // scattered, as frequent tokens are
			for g := range vocabulary / compute.SubsetGroup {
				if g%4 == 0 {
					subset = append(subset, int32(g))
				}
			}
			step := func(of []int32) time.Duration {
				r.Add(forest.Row{Seq: s, ID: 7, Want: forest.Want{Logits: true, Subset: of}})
				start := time.Now()
				r.Forward()
				took := time.Since(start)
				r.Drop(s, forest.Trunk)
				return took
			}
			step(nil)
			step(subset)
			var whole, part []time.Duration
			for b.Loop() {
				whole, part = append(whole, step(nil)), append(part, step(subset))
			}
			slices.Sort(whole)
			slices.Sort(part)
			b.ReportMetric(whole[len(whole)/2].Seconds()*1e3, "whole-ms")
			b.ReportMetric(part[len(part)/2].Seconds()*1e3, "part-ms")
			b.ReportMetric(100*part[len(part)/2].Seconds()/whole[len(whole)/2].Seconds(), "%whole")
		})
	}
}
