package scan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"grove/internal/kernel"
)

// BenchmarkAdvance advances all parts of a layer's state by 1 and by 64 rows, in the sizes of usual models, and reports the time of a row and
// head; of a convolution and Mamba 1, of a row and 64 channels.
func BenchmarkAdvance(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, s := range []struct {
		name  string
		op    Op
		heads int
	}{
		{"conv", &Conv{Channels: 6144, Taps: 4, Weight: values(rnd, 4*6144, 1), Silu: true}, 96},
		{"mamba1", &Mamba1{Inner: 1536, N: 16, A: between(rnd, 16*1536, -16, -1), D: values(rnd, 1536, 1)}, 24},
		{"mamba2", &Mamba2{Heads: 24, HeadSize: 64, N: 128, Groups: 1, A: between(rnd, 24, -16, -1), D: values(rnd, 24, 1)}, 24},
		{"delta", &Delta{Heads: 16, KeyHeads: 16, KeySize: 128, ValueSize: 128}, 16},
		{"kda", &Delta{Heads: 16, KeyHeads: 16, KeySize: 128, ValueSize: 128, PerChannel: true}, 16},
	} {
		record := s.op.Record()
		for _, rows := range []int{1, 64} {
			in, out := between(rnd, rows*record, -0.1, 0), make([]float32, rows*s.op.Out())
			states := make([][]float32, s.op.Parts())
			for i := range states {
				states[i] = values(rnd, s.op.Size(), 1)
			}
			for _, impl := range kernel.Implementations() {
				if impl != "avx512" && impl != "avx2" && impl != "portable" {
					continue
				}
				b.Run(fmt.Sprintf("%s/rows=%d/%s", s.name, rows, impl), func(b *testing.B) {
					defer kernel.Use(kernel.Implementation())
					kernel.Use(impl)
					b.ReportAllocs()
					for b.Loop() {
						for part, state := range states {
							s.op.Advance(part, state, state, in, record, rows, out, s.op.Out())
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*s.heads), "ns/row/head")
				})
			}
		}
	}
}
