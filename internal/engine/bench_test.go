package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
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

// BenchmarkBatch draws from one sequence and from eight in turns, and reports the ratio of the tokens a second, a median
// over turns, so that a machine that does other work changes it little.
func BenchmarkBatch(b *testing.B) {
	const seqs, each = 8, 8
	e := benchEngine(b, benchModel(b, "0.5b"), seqs)
	var all []*engine.Sequence
	for i := range seqs {
		all = append(all, benchSequence(b, e, i, 64))
	}
	var ratios []float64
	var alone, batch time.Duration
	for b.Loop() {
		one := drawAll(b, all[len(ratios)%seqs:][:1], each)
		many := drawAll(b, all, each)
		alone, batch = alone+one, batch+many
		ratios = append(ratios, seqs*one.Seconds()/many.Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(float64(each*len(ratios))/alone.Seconds(), "tok/s-alone")
	b.ReportMetric(float64(seqs*each*len(ratios))/batch.Seconds(), "tok/s-batch")
}

// BenchmarkDelay draws from a sequence while others read long prompts, and reports how many times longer than without
// them its steps take: the median step, the 95th in a hundred, the longest.
func BenchmarkDelay(b *testing.B) {
	e := benchEngine(b, benchModel(b, "0.5b"), 4)
	if _, err := e.Tune(b.Context()); err != nil {
		b.Fatal(err)
	}
	s := benchSequence(b, e, 0, 64)
	var usual, beside []float64
	rows := 0
	for b.Loop() {
		for range 20 {
			usual = append(usual, drawAll(b, []*engine.Sequence{s}, 1).Seconds())
		}
		ctx, cancel := context.WithCancel(b.Context())
		var reading sync.WaitGroup
		for i := range 2 {
			reader, err := e.NewSequence(engine.Answer{})
			if err != nil {
				b.Fatal(err)
			}
			prompt := text(2000 + rows%1000)[i+rows%1000:]
			reading.Go(func() {
				if err := reader.Append(ctx, prompt); !errors.Is(err, context.Canceled) {
					b.Errorf("the prompt was read to its end: %v", err)
				}
				if err := reader.Close(); err != nil {
					b.Error(err)
				}
			})
		}
		before := e.Load()
		for range 30 {
			beside = append(beside, drawAll(b, []*engine.Sequence{s}, 1).Seconds())
		}
		rows += e.Load().Rows - before.Rows
		cancel()
		reading.Wait()
	}
	slices.Sort(usual)
	slices.Sort(beside)
	one := usual[len(usual)/2]
	b.ReportMetric(one*1000, "ms-usual")
	b.ReportMetric(usual[len(usual)-1]/one, "longest-alone")
	for name, at := range map[string]int{"median": len(beside) / 2, "p95": len(beside) * 95 / 100, "longest": len(beside) - 1} {
		b.ReportMetric(beside[at]/one, name)
	}
	b.ReportMetric(float64(rows)/float64(len(beside)), "rows/step")
}

// drawAll draws n tokens from each sequence at the same time and returns how long it took.
func drawAll(b *testing.B, all []*engine.Sequence, n int) time.Duration {
	start := time.Now()
	var running sync.WaitGroup
	for _, s := range all {
		running.Go(func() {
			for range n {
				if _, err := s.Next(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	return time.Since(start)
}

func benchEngine(b *testing.B, f *gguf.File, seqs int) *engine.Engine {
	b.Helper()
	pool := par.New(par.Threads())
	b.Cleanup(pool.Close)
	m, err := model.Open(f, pool, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{Seqs: seqs, CacheType: tensor.F16, Context: min(4096, m.Info().Context)})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// benchSequence opens a sequence behind a prompt that others have as well, but for the last token.
func benchSequence(b *testing.B, e *engine.Engine, i, prefix int) *engine.Sequence {
	b.Helper()
	s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Seed: uint64(i), Temperature: 1}})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Append(b.Context(), append(text(prefix), token.ID(i))); err != nil {
		b.Fatal(err)
	}
	return s
}

func benchModel(b *testing.B, name string) *gguf.File {
	b.Helper()
	if name == "0.5b" {
		s, err := synthetic.Named("0.5b", tensor.Q8_0)
		if err != nil {
			b.Fatal(err)
		}
		return modeltest.Spec(s).File(b)
	}
	const path = "../../../shared/models/stories260K.gguf"
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
	e := benchEngine(b, f, seqs)
	open := func(i int) *engine.Sequence { return benchSequence(b, e, i, prefix) }
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
