package programs

import (
	"context"
	"fmt"
	"go/build"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
	"grove/method/datastore"
	"grove/search"
)

const (
	superposedBenchPrompt = 32 // tokens
	superposedBenchTokens = 16 // behind it
)

// goSources returns prompts of Go source, and a datastore of other files.
func goSources(b *testing.B) (all [][]token.ID, s *datastore.Store) {
	b.Helper()
	words, err := tokenizer.FromGGUF(parse(b, gopher.Name))
	if err != nil {
		b.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", "*", "*.go"))
	if err != nil || len(files) < 100 {
		b.Skip("the sources of the Go distribution are not here")
	}
	var texts [][]token.ID
	for i, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		ids, err := words.Encode(nil, string(text), tokenizer.Options{Special: i%10 == 0})
		if err != nil {
			b.Fatal(err)
		}
		if at := len(ids) / 2; i%10 != 0 {
			texts = append(texts, ids)
		} else if len(ids) > 1000 && len(all) < 40 {
			all = append(all, ids[at:at+superposedBenchPrompt])
		}
	}
	return all, store(b, texts...)
}

// superposedSamples draws answers of a prompt from several sequences in steps that they share.
func superposedSamples(b *testing.B, e *engine.Engine, a engine.Answer, ids []token.ID, from, to int) (texts [][]token.ID) {
	s := superposedBegin(b, e, a, ids)
	samples, err := search.Fork(b.Context(), &search.Problem{First: s, MaxTokens: superposedBenchTokens, Ender: ending()}, from, to)
	if err != nil || len(samples.All) != to-from {
		b.Fatal(len(samples.All), err)
	}
	for more := true; more && err == nil; {
		more, err = samples.Draw()
	}
	for i := range samples.All {
		var text []token.ID
		for _, d := range samples.All[i].Drawn {
			text = append(text, d.ID)
		}
		texts = append(texts, text)
	}
	if err != nil || samples.Close() != nil || s.Close() != nil {
		b.Fatal(err)
	}
	return texts
}

// suggestions searches a prompt.
func suggestions(b *testing.B, e *engine.Engine, options string, ids []token.ID, grams *datastore.Store) (texts [][]token.ID) {
	p, err := search.Open(options)
	if err != nil {
		b.Fatal(err)
	}
	s := superposedBegin(b, e, engine.Answer{}, ids)
	r, err := p.Run(b.Context(), &search.Problem{First: s, MaxTokens: superposedBenchTokens, Ender: ending(), Datastore: grams})
	if err != nil || s.Close() != nil {
		b.Fatal(err)
	}
	for _, a := range r.Attempts {
		texts = append(texts, a.IDs)
	}
	return texts
}

// nll returns the sum of the negative log-probabilities of texts behind a prompt, and their tokens.
func nll(b *testing.B, e *engine.Engine, prompt []token.ID, texts [][]token.ID) (sum float64, n int) {
	for _, text := range texts {
		ids := slices.Concat(prompt, text)
		at := len(prompt)
		err := e.Logits(context.Background(), ids[:len(ids)-1], at-1, func(row []float32) error {
			total := 0.0
			for _, l := range row {
				total += math.Exp(float64(l - row[ids[at]]))
			}
			sum, n, at = sum+math.Log(total), n+1, at+1
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return sum, n
}

// BenchmarkSuperposedSamples compares the time of k suggestions with that of k samples in shared steps and one after another, and on gopher the
// perplexity, under the model, of suggestions, of the first of them, of nucleus samples, and of the greedy answer.
func BenchmarkSuperposedSamples(b *testing.B) {
	prompts, grams := goSources(b)
	for _, name := range []string{gopher.Name, "0.5b"} {
		var e *engine.Engine
		for _, k := range []int{3, 10} {
			b.Run(fmt.Sprintf("model=%s/k=%d", name, k), func(b *testing.B) {
				if e == nil {
					e = newEngine(b, benchFile(b, name), par.Threads(), 12)
				}
				answer := engine.Answer{Sampling: sample.Params{Temperature: 1, TopP: 0.9, Seed: 1}}
				options := fmt.Sprintf("superposed,k=%d", k)
				ways := []struct {
					name string
					run  func(ids []token.ID) [][]token.ID
					nll  float64
					n    int
					ms   []float64
				}{
					{name: "superposed", run: func(ids []token.ID) [][]token.ID { return suggestions(b, e, options, ids, grams) }},
					{name: "no-grams", run: func(ids []token.ID) [][]token.ID { return suggestions(b, e, options, ids, nil) }},
					{name: "batch", run: func(ids []token.ID) [][]token.ID { return superposedSamples(b, e, answer, ids, 0, k) }},
					{name: "single", run: func(ids []token.ID) (all [][]token.ID) {
						for i := range k {
							all = append(all, superposedSamples(b, e, answer, ids, i, i+1)...)
						}
						return all
					}},
					{name: "greedy", run: func(ids []token.ID) [][]token.ID { return superposedSamples(b, e, engine.Answer{}, ids, 0, 1) }},
				}
				firstNLL, firstN := 0.0, 0
				for n := 0; b.Loop(); n++ {
					ids := prompts[n%len(prompts)]
					for i := range ways {
						w := &ways[i]
						start := time.Now()
						texts := w.run(ids)
						w.ms = append(w.ms, 1e3*time.Since(start).Seconds())
						if name == gopher.Name {
							sum, tokens := nll(b, e, ids, texts)
							w.nll, w.n = w.nll+sum, w.n+tokens
							if i == 0 {
								sum, tokens := nll(b, e, ids, texts[:1])
								firstNLL, firstN = firstNLL+sum, firstN+tokens
							}
						}
					}
				}
				b.ReportMetric(0, "ns/op")
				median := func(ms []float64) float64 { slices.Sort(ms); return ms[len(ms)/2] }
				for i := range ways {
					b.ReportMetric(median(ways[i].ms), ways[i].name+"-ms")
					if ways[i].n > 0 {
						b.ReportMetric(math.Exp(ways[i].nll/float64(ways[i].n)), ways[i].name+"-ppl")
					}
				}
				if firstN > 0 {
					b.ReportMetric(math.Exp(firstNLL/float64(firstN)), "first-ppl")
				}
			})
		}
	}
}

// benchFile returns a model by its name.
func benchFile(b *testing.B, name string) *gguf.File {
	if gopher.Named(name) != nil {
		return parse(b, name)
	}
	s, err := synthetic.Named(name, tensor.Q8_0)
	if err != nil {
		b.Fatal(err)
	}
	return modeltest.Spec(s).File(b)
}
