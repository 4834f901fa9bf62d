package engine_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"grove/engine"
	"grove/gguf"
	"grove/internal/par"
	"grove/model"
	"grove/modeltest"
	"grove/sample"
	"grove/synthetic"
	"grove/tensor"
	"grove/token"
)

// BenchmarkNext draws tokens from sequences at a time behind prompts that begin alike, and reports the tokens a second of
// all. The small model is one whose steps take some ten microseconds: what waiting in line costs shows there.
func BenchmarkNext(b *testing.B) {
	for _, name := range []string{"stories260K", "0.5b"} {
		for _, seqs := range []int{1, 8} {
			for _, prefix := range []int{64, 1984} {
				if name == "stories260K" && prefix > 64 {
					continue // it has no room
				}
				b.Run(fmt.Sprintf("model=%s/seqs=%d/prefix=%d", name, seqs, prefix), func(b *testing.B) {
					benchmarkNext(b, benchModel(b, name), seqs, prefix)
				})
			}
		}
	}
}

func benchModel(b *testing.B, name string) *gguf.File {
	b.Helper()
	if name == "0.5b" {
		s, err := synthetic.Shape("0.5b", tensor.Q8_0)
		if err != nil {
			b.Fatal(err)
		}
		return modeltest.Spec(s).File(b)
	}
	const path = "../../shared/models/stories260K.gguf"
	if _, err := os.Stat(path); err != nil {
		b.Skip("the model is not there: ", err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

func benchmarkNext(b *testing.B, f *gguf.File, seqs, prefix int) {
	pool := par.New(par.Threads())
	defer pool.Close()
	m, err := model.Open(f, pool, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{Seqs: seqs, CacheType: tensor.F16, Context: min(4096, m.Info().Context)})
	if err != nil {
		b.Fatal(err)
	}
	open := func(i int) *engine.Sequence {
		s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Seed: uint64(i), Temperature: 1}})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Append(b.Context(), append(text(prefix), token.ID(i))); err != nil {
			b.Fatal(err)
		}
		return s
	}
	var all []*engine.Sequence
	for i := range seqs {
		all = append(all, open(i))
	}
	room := e.Context() - prefix - 2
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for i, s := range all {
		running.Go(func() {
			for n := range b.N {
				if n%room == room-1 {
					if err := s.Close(); err != nil {
						b.Error(err)
					}
					s = open(i)
				}
				if _, err := s.Next(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(seqs*b.N)/b.Elapsed().Seconds(), "tok/s")
}
