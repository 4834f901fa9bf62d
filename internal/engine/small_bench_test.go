package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/internal/sample"
	"grove/internal/weights/gguf"
)

// BenchmarkSmall draws tokens of the embedded models and reports the median time from one token to the next, and of this
// the share outside of the forward pass, by how tokens are drawn: greedy, at temperature 1, as the files recommend.
func BenchmarkSmall(b *testing.B) {
	settings := []engine.Answer{
		{},
		{Sampling: sample.Params{Temperature: 1, Seed: 1}},
		{Sampling: sample.Params{Temperature: 0.4, TopP: 0.9, Seed: 1}, Penalties: sample.Penalties{Repeat: 1.1, RepeatWindow: 64}},
	}
	for _, name := range []string{"gopher-target", "gopher-draft"} {
		f, err := gguf.Parse(gopher.Named(name))
		if err != nil {
			b.Fatal(err)
		}
		for i, draw := range []string{"greedy", "temperature", "recommended"} {
			b.Run(fmt.Sprintf("model=%s/draw=%s", name, draw), func(b *testing.B) {
				e := benchEngine(b, f, 1)
				s, err := e.NewSequence(settings[i])
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Append(b.Context(), text(2)); err != nil {
					b.Fatal(err)
				}
				times := make([]time.Duration, 0, b.N+200)
				next := func() {
					start := time.Now()
					if _, err := s.Next(b.Context()); err != nil {
						b.Fatal(err)
					}
					times = append(times, time.Since(start))
					if s.Len() == 96 {
						if err := s.Truncate(64); err != nil {
							b.Fatal(err)
						}
					}
				}
				for range 200 {
					next()
				}
				times = times[:0]
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					next()
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
