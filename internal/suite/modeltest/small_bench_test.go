package modeltest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"grove/internal/forest"
	"grove/internal/gopher"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// BenchmarkSmall runs steps of small models and of 0.5b behind 64 tokens, all rows with logits, and reports the median
// time and the tenths of the times. A step allocates nothing.
func BenchmarkSmall(b *testing.B) {
	for _, name := range []string{"gopher-target", "gopher-draft", "gopher-nano", "0.5b"} {
		var file *gguf.File
		for _, threads := range []int{1, par.Threads()} {
			for _, rows := range []int{1, 2, 4, 8, 16, 64} {
				b.Run(fmt.Sprintf("model=%s/threads=%d/rows=%d", name, threads, rows), func(b *testing.B) {
					if file == nil {
						file = smallFile(b, name)
					}
					r := New(b, file, Config{CacheType: tensor.F16, Threads: threads, Seqs: 1, Context: 256})
					s := r.NewSeq("")
					r.Prefill(s, make([]token.ID, kv.PageTokens), kv.PageTokens)
					var times []time.Duration
					step := func() {
						var parent forest.Node
						for i := range rows {
							parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: token.ID(i), Want: logits})
						}
						start := time.Now()
						r.Forward()
						took := time.Since(start)
						r.Drop(s, forest.Trunk)
						times = append(times, took)
					}
					times = make([]time.Duration, 0, 100+b.N)
					for range 50 {
						step()
					}
					if allocs := testing.AllocsPerRun(20, step); allocs != 0 {
						b.Fatalf("a step allocates %v times", allocs)
					}
					times = times[:0]
					b.ResetTimer()
					for range b.N {
						step()
					}
					slices.Sort(times)
					at := func(share float64) float64 {
						return float64(times[int(share*float64(len(times)-1))].Nanoseconds()) / 1e3
					}
					b.ReportMetric(at(0.5), "us")
					b.ReportMetric(at(0.1), "us-p10")
					b.ReportMetric(at(0.9), "us-p90")
				})
			}
		}
	}
}

func smallFile(b *testing.B, name string) *gguf.File {
	data := gopher.Named(name)
	if data == nil {
		return half(b, tensor.Q8_0).File(b)
	}
	f, err := gguf.Parse(data)
	if err != nil {
		b.Fatal(err)
	}
	return f
}
