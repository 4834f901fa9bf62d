package programs

import (
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/model"
	_ "grove/internal/model/all" // links the architectures
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
	"grove/search"
)

const (
	benchSamples    = 8
	bestBenchPrompt = 1000 // tokens
	bestBenchTokens = 32   // behind it
)

// BenchmarkBestSamples draws samples of one answer in three ways, which take turns: as one search; one by one, where the cache has the
// prompt; and one by one, each with a prompt of its own.
func BenchmarkBestSamples(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	spec, err := synthetic.Named("0.5b", tensor.Q8_0)
	if err != nil {
		b.Fatal(err)
	}
	m, err := model.Open(modeltest.Spec(spec).File(b), pool, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{Seqs: benchSamples, Context: bestBenchPrompt + bestBenchTokens, CacheType: tensor.F16})
	if err != nil {
		b.Fatal(err)
	}
	prompt := make([]token.ID, bestBenchPrompt)
	for i := range prompt {
		prompt[i] = token.ID((i*7919 + 11) % m.Info().Vocabulary)
	}
	var searched, cached, separate time.Duration
	for b.Loop() {
		begin := time.Now()
		together(b, e, prompt)
		searched += time.Since(begin)
		begin = time.Now()
		salt := begin.String()
		for i := range benchSamples {
			bestAlone(b, e, prompt, i, engine.Terms{Salt: salt})
		}
		cached += time.Since(begin)
		begin = time.Now()
		for i := range benchSamples {
			bestAlone(b, e, prompt, i, engine.Terms{Private: true})
		}
		separate += time.Since(begin)
	}
	b.ReportMetric(0, "ns/op")
	n := float64(b.N)
	b.ReportMetric(searched.Seconds()/n, "search-s")
	b.ReportMetric(cached.Seconds()/n, "cached-s")
	b.ReportMetric(separate.Seconds()/n, "separate-s")
	b.ReportMetric(float64(separate)/float64(searched), "times")
}

// bestBegin opens a sequence behind a prompt.
func bestBegin(b *testing.B, e *engine.Engine, prompt []token.ID, index int, t engine.Terms) *engine.Sequence {
	s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 3}, SampleIndex: index})
	if err == nil {
		err = s.SetTerms(t)
	}
	if err == nil {
		err = s.Append(b.Context(), prompt)
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// together draws the samples as a search does.
func together(b *testing.B, e *engine.Engine, prompt []token.ID) {
	s := bestBegin(b, e, prompt, 0, engine.Terms{Private: true})
	never := func(engine.SampledToken) bool { return false }
	p := &search.Problem{First: s, MaxTokens: bestBenchTokens, Slots: benchSamples, Ender: func() func(engine.SampledToken) bool { return never }}
	r, err := bestBest{benchSamples, "mean"}.Run(b.Context(), p)
	if err != nil || len(r.Attempts) != benchSamples || s.Close() != nil {
		b.Fatal(r, err)
	}
}

// bestAlone draws one sample.
func bestAlone(b *testing.B, e *engine.Engine, prompt []token.ID, index int, t engine.Terms) {
	s := bestBegin(b, e, prompt, index, t)
	for range bestBenchTokens {
		if _, err := s.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
