package engine_test

import (
	"os"
	"testing"
	"time"

	"grove/constrain"
	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// listed is a schema whose texts have no bound: decoding under it is compared with decoding without.
const listed = `{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"},
	"tags":{"type":"array","items":{"enum":["red","green","blue"]}}},"required":["name","count","tags"],"additionalProperties":false},"minItems":5000}`

// BenchmarkConstrained draws from a random model of 0.5 B weights in Q4_0 with a vocabulary of 32,000, in turns with and without a
// schema, and reports the speed with it as a share of that without, and what the draws of masked tokens take besides.
func BenchmarkConstrained(b *testing.B) {
	const path = "../../../shared/golden/tokenizers/ggml-vocab-llama-spm.gguf"
	if _, err := os.Stat(path); err != nil {
		b.Skip("the vocabulary is not there: ", err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		b.Fatal(err)
	}
	spec, err := synthetic.Named("0.5b", tensor.Q4_0)
	if err != nil {
		b.Fatal(err)
	}
	spec.Vocab = tok.Size()
	pool := par.New(par.Threads())
	defer pool.Close()
	m, err := model.Open(modeltest.Spec(spec).File(b), pool, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{Seqs: 2, Context: 1024})
	if err != nil {
		b.Fatal(err)
	}
	v, err := constrain.NewVocabulary(tok, tok.Size(), sample.Thinking{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := constrain.Compile(constrain.Spec{Schema: []byte(listed)}, v, constrain.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	open := func(stages []sample.Stage) *engine.Sequence {
		s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, TopK: 40, TopP: 0.95, Seed: 1}, Stages: stages})
		if err == nil {
			err = s.Append(b.Context(), text(16))
		}
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	seqs := [2]*engine.Sequence{open(nil), open(c.Stages(nil))}
	var took [2]time.Duration
	var least [2]time.Duration
	for b.Loop() {
		for i, s := range seqs {
			if s.Len() > 1000 {
				s.Close()
				s = open([][]sample.Stage{nil, c.Stages(nil)}[i])
				seqs[i] = s
			}
			start := time.Now()
			for range 4 {
				if _, err := s.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			d := time.Since(start)
			if took[i] += d; least[i] == 0 || d < least[i] {
				least[i] = d
			}
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "of-plain-speed")
	b.ReportMetric(float64(least[0])/float64(least[1]), "of-plain-best")
}
