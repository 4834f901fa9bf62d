package levels

import (
	"testing"

	"grove/engine"
	"grove/gopher"
	"grove/internal/par"
	"grove/method"
	_ "grove/method/model/draft" // what levels is compared with
	"grove/model"
	_ "grove/model/all" // links the architecture
	"grove/sample"
	"grove/text/token"
	"grove/weights/gguf"
)

// BenchmarkGopher reports the tokens a round that three levels of the gopher models give, and those of either smaller model alone as a chain, for the same texts
// and seeds. Every draft is run.
func BenchmarkGopher(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	target, draft, nano := open(b, pool, gopher.Name), open(b, pool, gopher.DraftName), open(b, pool, gopher.NanoName)
	for _, c := range []struct {
		name, method string
		env          method.Env
	}{
		{"nano, draft, target", "levels", method.Env{Draft: nano.Model(), Middle: draft.Model()}},
		{"draft, target", "draft-chain", method.Env{Draft: draft.Model()}},
		{"nano, target", "draft-chain", method.Env{Draft: nano.Model()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			info, err := method.Find(c.method)
			if err != nil {
				b.Fatal(err)
			}
			d, err := target.OpenDrafting(b.Context(), []method.Info{info}, c.env)
			if err != nil {
				b.Fatal(err)
			}
			d.Eager()
			var all engine.SpecStats
			for b.Loop() {
				for i := range 20 {
					all.Add(text(b, target, d, i))
				}
			}
			b.ReportMetric(float64(all.Tokens)/float64(all.Rounds), "tok/round")
			b.ReportMetric(float64(all.Drafted)/float64(all.Rounds), "drafts/round")
			b.ReportMetric(float64(all.Tokens)/(all.Drafting+all.Stepping).Seconds(), "tok/s")
		})
	}
}

func open(b *testing.B, pool *par.Pool, name string) *engine.Engine {
	f, err := gguf.Parse(gopher.Named(name))
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

// text draws a text, which begins with a token that depends on its number, and returns what drafting did after the
// first tokens.
func text(b *testing.B, e *engine.Engine, d *engine.Drafting, number int) engine.SpecStats {
	q, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 0.8, Seed: 1}, SampleIndex: number})
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	if err := q.Speculate(d, nil); err != nil {
		b.Fatal(err)
	}
	if err := q.Append(b.Context(), []token.ID{token.ID(300 + number)}); err != nil {
		b.Fatal(err)
	}
	for range 120 {
		if _, err := q.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return q.SpecStats()
}
