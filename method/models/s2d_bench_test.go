package models

import (
	"context"
	"fmt"
	"testing"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/gopher"
	_ "grove/internal/model/all" // links the architecture
	"grove/internal/par"
	"grove/internal/suite/gophertest"
	"grove/method"
)

const testdata = "../../internal/gopher/testdata/"

// counted counts what the passes of a model run.
type counted struct {
	method.Model
	passes, layers, rows int
}

// Open implements [method.Model].
func (c *counted) Open() (method.Branch, error) {
	b, err := c.Model.Open()
	return countedBranch{b, c}, err
}

type countedBranch struct {
	method.Branch
	of *counted
}

// Grow implements [method.Trunk].
func (b countedBranch) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	all := b.of.Size().Layers
	var run forest.Layers
	for _, r := range rows {
		to := r.To
		if to == 0 {
			to = all
		}
		run = run.Union(forest.LayerRange(r.From, to))
	}
	b.of.passes, b.of.layers, b.of.rows = b.of.passes+1, b.of.layers+run.Len(), b.of.rows+len(rows)
	return b.Branch.Grow(ctx, rows)
}

// BenchmarkNested reports the tokens a round of chains of drafts, and the passes of the draft model and the layers that they run for each draft, for
// two targets: by gopher-draft, by all layers of the nested draft model, and by its exits. Every draft is run.
func BenchmarkNested(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	nested := gophertest.OpenFile(b, pool, testdata+"drafters/gopher-s2d/gopher-s2d.q8_0.gguf")
	small := gophertest.Open(b, pool, gopher.DraftName)
	for _, target := range []struct {
		name string
		*engine.Engine
	}{{"gopher-target", gophertest.Open(b, pool, gopher.Name)}, {"gopher-deep", gophertest.OpenFile(b, pool, testdata+"gopher-deep/gopher-deep.q8_0.gguf")}} {
		for _, c := range []struct {
			draft string
			*engine.Engine
			methods []string
		}{
			{"gopher-draft", small, []string{"draft-chain"}},
			{"gopher-s2d", nested, []string{
				"draft-chain", "s2d:threshold=1", "s2d:exits=1+threshold=0", "s2d:exits=2+threshold=0",
				"s2d:exits=1/2+threshold=0.2", "s2d:exits=1/2+threshold=0.3", "s2d:exits=1/2+threshold=0.5", "s2d:exits=1/2+threshold=0.7",
				"s2d:exits=1+threshold=0.5", "s2d:exits=2+threshold=0.3", "s2d:exits=2+threshold=0.5", "s2d:exits=2+threshold=0.7",
			}},
		} {
			for _, name := range c.methods {
				info, err := method.Find(name)
				if err != nil {
					b.Fatal(err)
				}
				for _, temperature := range []float32{0, 1} {
					b.Run(fmt.Sprintf("%s/%s/%s/%v", target.name, c.draft, name, temperature), func(b *testing.B) {
						draft := &counted{Model: c.Model()}
						all := gophertest.RoundsAt(b, target.Engine, info, method.Env{Draft: draft}, 120, temperature)
						b.ReportMetric(float64(draft.passes)/float64(all.Drafted), "passes/draft")
						b.ReportMetric(float64(draft.layers)/float64(all.Drafted), "layers/draft")
					})
				}
			}
		}
	}
}
