// Package gophertest measures methods with the gopher models, for benchmarks of the packages that have them.
package gophertest

import (
	"testing"

	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/method"
)

// texts is how many texts a benchmark draws.
const texts = 20

// Temperature is that of the texts.
const Temperature = 0.8

// Open opens a gopher model by its name. The caller links the architecture.
func Open(b testing.TB, pool *par.Pool, name string) *engine.Engine {
	b.Helper()
	f, err := gguf.Parse(gopher.Named(name))
	return open(b, pool, f, err)
}

// OpenFile opens a model of a GGUF file, which is closed when the test or benchmark ends. The caller links the architecture.
func OpenFile(b testing.TB, pool *par.Pool, path string) *engine.Engine {
	b.Helper()
	f, err := gguf.Open(path)
	if err == nil {
		b.Cleanup(func() { f.Close() })
	}
	return open(b, pool, f, err)
}

// open makes an engine of a file.
func open(b testing.TB, pool *par.Pool, f *gguf.File, err error) *engine.Engine {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	m, err := model.Open(f, pool, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// Rounds draws the same texts of so many tokens with a method, whose every draft is run, and reports tokens and drafts a round, and tokens a second.
func Rounds(b *testing.B, target *engine.Engine, i method.Info, env method.Env, tokens int) {
	b.Helper()
	RoundsAt(b, target, i, env, tokens, Temperature)
}

// RoundsAt is Rounds at a temperature. It returns what drafting did.
func RoundsAt(b *testing.B, target *engine.Engine, i method.Info, env method.Env, tokens int, temperature float32) (all engine.SpecStats) {
	b.Helper()
	d, err := target.OpenDrafting(b.Context(), []method.Info{i}, env)
	if err != nil {
		b.Fatal(err)
	}
	d.Eager()
	for b.Loop() {
		for number := range texts {
			all.Add(text(b, target, d, number, tokens, temperature))
		}
	}
	b.ReportMetric(float64(all.Tokens)/float64(all.Rounds), "tok/round")
	b.ReportMetric(float64(all.Drafted)/float64(all.Rounds), "drafts/round")
	b.ReportMetric(float64(all.Tokens)/(all.Drafting+all.Stepping).Seconds(), "tok/s")
	return all
}

// text draws a text, which begins with a token that depends on its number, and returns what drafting did after the
// first tokens.
func text(b *testing.B, e *engine.Engine, d *engine.Drafting, number, tokens int, temperature float32) engine.SpecStats {
	q, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: temperature, Seed: 1}, SampleIndex: number})
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	if err := q.SetDrafting(d, nil); err != nil {
		b.Fatal(err)
	}
	if err := q.Append(b.Context(), []token.ID{token.ID(300 + number)}); err != nil {
		b.Fatal(err)
	}
	for range tokens {
		if _, err := q.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return q.SpecStats()
}
