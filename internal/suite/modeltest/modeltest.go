// Package modeltest is the suite of tests of models: golden models, random models of every weight type, and a
// runner that drives a model's forward pass directly.
package modeltest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/model"
	_ "grove/internal/model/all" // the architectures under test
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Goldens are the models in testdata, one or more for each architecture.
var Goldens = []string{"llama-gqa", "llama-tied", "mixtral", "gemma3", "qwen3moe",
	"qwen2", "qwen3", "gemma2", "phi3", "olmo2", "starcoder2", "gpt2"}

// Config configures a [Runner]. Zero values mean an F32 cache, one thread, and room for 4
// sequences of 512 tokens and 320 live rows.
type Config struct {
	CacheType   tensor.Type
	NoRepack    bool
	Threads     int
	Seqs        int
	Context     int
	Scratch     int
	Tokens      int
	Substitutes compute.SubstituteLayers // what stands for layers of rows that substitute them; nil: none
}

// Runner is a model with a cache and an executor; every error fails the test.
type Runner struct {
	Model model.Model
	Cache *kv.Cache
	Exec  *compute.Exec

	tb      testing.TB
	encoder *Runner    // of an encoder-decoder
	source  []token.ID // of its sequences
}

// Open opens a model file.
func Open(tb testing.TB, path string, c Config) *Runner {
	tb.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return New(tb, f, c)
}

// New makes a runner for the model of an open file.
func New(tb testing.TB, f *gguf.File, c Config) *Runner {
	tb.Helper()
	pool := par.New(max(1, c.Threads))
	tb.Cleanup(pool.Close)
	m, err := model.Open(f, pool, model.Options{NoRepack: c.NoRepack, Context: c.Context})
	if err != nil {
		tb.Fatal(err)
	}
	return NewFor(tb, m, pool, c)
}

// NewFor makes a runner for an open model.
func NewFor(tb testing.TB, m model.Model, pool *par.Pool, c Config) *Runner {
	tb.Helper()
	or := func(v *int, other int) {
		if *v == 0 {
			*v = other
		}
	}
	or(&c.Seqs, 4)
	or(&c.Context, 512)
	or(&c.Scratch, 320)
	or(&c.Tokens, c.Seqs*c.Context)
	layers := slices.Clone(m.Info().Layers)
	for l := range layers {
		layers[l].Gaps = c.Substitutes.Set().Has(l)
	}
	cache, err := kv.New(kv.Config{
		Layers: layers, Type: c.CacheType, Context: c.Context, Tokens: c.Tokens,
		Seqs: c.Seqs, Scratch: c.Scratch, Identity: m.Info().Identity,
	})
	if err != nil {
		tb.Fatal(err)
	}
	r := &Runner{
		Model: m, Cache: cache, tb: tb,
		Exec: compute.NewExec(cache, pool, m.Info().Width, c.Scratch),
	}
	r.Exec.SetSubstitutes(c.Substitutes)
	if s := m.Info().Source; s != nil {
		r.encoder = NewFor(tb, s.Encoder, pool, Config{Context: c.Context, Scratch: c.Context})
		for i := range sourceLength {
			r.source = append(r.source, token.ID(i*29%m.Info().Vocabulary))
		}
	}
	return r
}

// sourceLength is the tokens of the source that sequences have where a test gives no other: more than a page.
const sourceLength = 77

// Read makes ids the source of the sequences that are opened from now on.
func (r *Runner) Read(ids []token.ID) { r.source = ids }

// NewSeq opens a sequence; that of an encoder-decoder has read the runner's source.
func (r *Runner) NewSeq(salt string) forest.Seq {
	r.tb.Helper()
	s := r.Cache.NewSeq(salt)
	if r.encoder == nil {
		return s
	}
	stored, err := r.Cache.SetSource(s, fmt.Sprint(r.source), len(r.source))
	if err != nil {
		r.tb.Fatal(err)
	}
	if !stored {
		var states []float32
		for _, row := range r.encoder.Encode(r.source) {
			states = append(states, row...)
		}
		if err := r.Exec.ReadSource(context.Background(), s, states, r.encoder.Model.Info().Width, r.Model.Info().Source.Read); err != nil {
			r.tb.Fatal(err)
		}
		r.Cache.SealSource(s)
	}
	return s
}

// Encode runs a text as one block and returns every token's state. The rows are dropped.
func (r *Runner) Encode(ids []token.ID) []Bits {
	r.tb.Helper()
	s := r.Cache.NewSeq("")
	defer r.Close(s)
	parent := forest.Trunk
	for _, id := range ids {
		parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: id, Block: 1, Want: forest.Want{State: true}})
	}
	r.Forward()
	out := make([]Bits, len(ids))
	for i := range out {
		out[i] = append(Bits(nil), r.Exec.Result(i).State...)
	}
	return out
}

// Add adds a row to the next step.
func (r *Runner) Add(row forest.Row) forest.Node {
	r.tb.Helper()
	n, err := r.Exec.Step.Add(row)
	if err != nil {
		r.tb.Fatal(err)
	}
	return n
}

// Forward runs the rows that were added. The executor has their results until the next Forward; the next Add
// begins a new step.
func (r *Runner) Forward() {
	r.tb.Helper()
	if err := r.Exec.Run(context.Background(), r.Model.Forward); err != nil {
		r.tb.Fatal(err)
	}
	r.Exec.Step.Reset()
}
