package resident

import (
	"fmt"
	"testing"

	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// BenchmarkDraftMemory reports what is left of the tokens of a round, and of speed, where drafting has a part of the memory that it takes
// without a bound. Every draft is run; the texts are the same.
func BenchmarkDraftMemory(b *testing.B) {
	for _, c := range []struct{ method, draft string }{{"draft", gopher.DraftName}, {"draft-fixed", gopher.DraftName}, {"draft-rsd", gopher.DraftName}, {"draft-dyspec", gopher.DraftName}} {
		p := sample.Params{Temperature: 0.8, TopK: 40, Seed: 1}
		whole := 0
		for _, part := range []int{100, 50, 35, 20, 10} {
			b.Run(fmt.Sprintf("%s/%d%%", c.method, part), func(b *testing.B) {
				o := Options{Draft: c.draft}
				if part < 100 {
					o.DraftMemory = uint64(whole * part / 100)
				}
				m := opened(b, o)
				if s, err := drafts(b, m, c.method, p); err != nil {
					b.Skip(err)
				} else {
					_, all := m.DraftSize()
					needs, _, _ := s.DraftMemory()
					if all.Add(1, needs); whole == 0 {
						whole = all.Total()
					}
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
				}
				var all engine.SpecStats
				most := 0
				for b.Loop() {
					for i := range 8 {
						s, err := m.Engine.NewSequence(engine.Answer{Sampling: p, SampleIndex: i})
						if err != nil {
							b.Fatal(err)
						}
						d, err := m.Drafting(b.Context(), c.method)
						if err == nil {
							err = s.SetDrafting(d, nil)
						}
						if err == nil {
							err = s.Append(b.Context(), []token.ID{token.ID(300 + i)})
						}
						for range 120 {
							if err == nil {
								_, err = s.Next(b.Context())
							}
						}
						if err != nil {
							b.Fatal(err)
						}
						all.Add(s.SpecStats())
						_, _, most = s.DraftMemory()
						if err := s.Close(); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(all.Tokens)/float64(all.Rounds), "tok/round")
				b.ReportMetric(float64(all.Tokens)/(all.Drafting+all.Stepping).Seconds(), "tok/s")
				b.ReportMetric(float64(most), "drafts")
				b.ReportMetric(float64(whole*part/100)/1024, "KiB")
			})
		}
	}
}
