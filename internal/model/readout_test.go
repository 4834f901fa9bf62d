package model_test

import (
	"math"
	"testing"

	"grove/internal/compute"
	"grove/internal/model"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/gguf"
)

// TestRank compares a reranker's head, of a matrix, an activation, a norm and a matrix, with float64 arithmetic.
func TestRank(t *testing.T) {
	x := []float32{0.5, -2, 3}
	w1, b1 := []float32{1, 0.5, -0.25, 0.125, -1, 0.75}, []float32{0.1, -0.2}
	w2, b2 := []float32{2, -3, 0.5, 1, 1, -1}, []float32{0.3, 0, -0.1}
	norm := []float32{1.5, 0.5}
	v := func(f []float32) compute.Vector { return compute.Vector{F: f} }
	for name, c := range map[string]struct {
		activation model.Activation
		f          func(x float64) float64
	}{
		"linear": {model.Linear, func(x float64) float64 { return x }},
		"tanh":   {model.Tanh, math.Tanh},
		"gelu":   {model.Gelu, func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := model.Rank{Softmax: true, Head: []model.Dense{
				{Weight: v(w1), Bias: v(b1), Norm: v(norm), Eps: 1e-5, In: 3, Out: 2, Activation: c.activation}, {Weight: v(w2), Bias: v(b2), In: 2, Out: 3},
			}}
			var mid [2]float64
			for o := range mid {
				for i := range x {
					mid[o] += float64(w1[3*o+i]) * float64(x[i])
				}
				mid[o] = c.f(mid[o] + float64(b1[o]))
			}
			mean := (mid[0] + mid[1]) / 2
			spread := math.Sqrt((mid[0]-mean)*(mid[0]-mean) + 1e-5) // of two values
			var want [3]float64
			sum := 0.0
			for o := range want {
				want[o] = float64(b2[o])
				for i := range mid {
					want[o] += float64(w2[2*o+i]) * (mid[i] - mean) / spread * float64(norm[i])
				}
				want[o] = math.Exp(want[o])
				sum += want[o]
			}
			for o, got := range r.Values(x) {
				if !(math.Abs(float64(got)-want[o]/sum) < 1e-6) {
					t.Errorf("value %d is %v, want %v", o, got, want[o]/sum)
				}
			}
		})
	}
}

// TestReadouts: what is behind the pooling belongs to the description of a model, with its width.
func TestReadouts(t *testing.T) {
	for arch, c := range map[string]struct {
		dense, head int
		pooling     model.Pooling
	}{
		"gemma-embedding": {dense: 2}, "neo-bert": {head: 2, pooling: model.PoolFirst}, "modern-bert": {head: 2, pooling: model.PoolMean},
		"jina-bert-v2": {head: 1, pooling: model.PoolFirst}, "nomic-bert": {},
	} {
		m, err := open(t, modeltest.Spec{Arch: arch}, both())
		if err != nil {
			t.Fatal(err)
		}
		i := m.Info()
		if !i.Encoder || !i.Embeds() || len(i.Dense) != c.dense || i.Output != i.Width {
			t.Errorf("%s: an encoder: %v; %d layers behind the pooling give %d of %d values", arch, i.Encoder, len(i.Dense), i.Output, i.Width)
		}
		if (i.Rank != nil) != (c.head > 0) || i.Rank != nil && (len(i.Rank.Head) != c.head || i.Rank.Pooling != c.pooling) {
			t.Errorf("%s: a head of %+v", arch, i.Rank)
		}
	}
	m, err := open(t, modeltest.Spec{Arch: "llama"}, both(set("llama.attention.causal", false), setValue("llama.classifier.output_labels", gguf.ArrayOf([]string{}))))
	if err != nil || !m.Info().Encoder {
		t.Errorf("a decoder whose tokens see each other: %v", err)
	}
}
