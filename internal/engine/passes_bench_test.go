package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/internal/model"
	_ "grove/internal/model/all"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/weights/gguf"
	"grove/method"
	_ "grove/method/all"
)

// BenchmarkDraftPasses draws from sequences that draft by one draft model, and reports the rows of a step of the
// draft model beside the rows that one drafter asks for at a time, which were a step of their own before drafting
// passes shared steps.
func BenchmarkDraftPasses(b *testing.B) {
	pool := par.New(par.Threads())
	b.Cleanup(pool.Close)
	open := func(name string, seqs int) *engine.Engine {
		f := benchModel(b, "0.5b")
		if data := gopher.Named(name); data != nil {
			var err error
			if f, err = gguf.Parse(data); err != nil {
				b.Fatal(err)
			}
		}
		m, err := model.Open(f, pool, model.Options{})
		if err != nil {
			b.Fatal(err)
		}
		e, err := engine.New(m, pool, engine.Config{Seqs: seqs, Context: 256})
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	for _, c := range []struct {
		draft string
		seqs  int
	}{{"gopher-draft", 1}, {"gopher-draft", 8}, {"0.5b", 1}, {"0.5b", 8}} {
		seqs := c.seqs
		b.Run(fmt.Sprintf("draft=%s/seqs=%d", c.draft, seqs), func(b *testing.B) {
			target, draft := open("gopher-target", seqs), open(c.draft, seqs)
			info, err := method.Find("draft")
			if err != nil {
				b.Fatal(err)
			}
			grown := &counted{Model: draft.Model()}
			d, err := target.OpenDrafting(b.Context(), []method.Info{info}, method.Env{Draft: grown})
			if err != nil {
				b.Fatal(err)
			}
			d.Eager()
			var all []*engine.Sequence
			for i := range seqs {
				s, err := target.NewSequence(engine.Answer{Sampling: sample.Params{Seed: uint64(i), Temperature: 0.8}})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.SetDrafting(d, nil); err != nil {
					b.Fatal(err)
				}
				if err := s.Append(b.Context(), text(40 + i)[i:]); err != nil {
					b.Fatal(err)
				}
				drawAll(b, []*engine.Sequence{s}, 4)
				all = append(all, s)
			}
			before := draft.Load()
			grown.reset()
			b.ResetTimer()
			tokens := 0
			for b.Loop() {
				if all[0].Len() > 220 {
					b.StopTimer()
					for _, s := range all {
						if err := s.Truncate(44); err != nil {
							b.Fatal(err)
						}
					}
					b.StartTimer()
				}
				drawAll(b, all, 16)
				tokens += 16 * seqs
			}
			after := draft.Load()
			b.ReportMetric(float64(after.Rows-before.Rows)/float64(after.Steps-before.Steps), "rows/pass")
			b.ReportMetric(float64(grown.rows)/float64(grown.calls), "rows/call")
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}

// counted is a model that counts what its branches grow.
type counted struct {
	method.Model
	mu          sync.Mutex
	calls, rows int
}

func (c *counted) reset() { c.calls, c.rows = 0, 0 }

func (c *counted) Open() (method.Branch, error) {
	b, err := c.Model.Open()
	return &countedBranch{b, c}, err
}

type countedBranch struct {
	method.Branch
	of *counted
}

func (b *countedBranch) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	b.of.mu.Lock()
	b.of.calls, b.of.rows = b.of.calls+1, b.of.rows+len(rows)
	b.of.mu.Unlock()
	return b.Branch.Grow(ctx, rows)
}
