package bytewise

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// draw draws n tokens behind a healed prompt, from rows that a model gives.
func draw(t *testing.T, h *Healing, m interface{ row([]token.ID) []float64 }, seed uint64, temperature float32, n int) (ids []token.ID) {
	t.Helper()
	size := len(m.row(nil))
	c, err := sample.NewChain(sample.Settings{Params: sample.Params{Temperature: temperature, Seed: seed}, Stages: []sample.Stage{h}}, size)
	if err != nil {
		t.Fatal(err)
	}
	for c.Begin(nil); len(ids) < n; {
		logits := make([]float32, size)
		for id, p := range m.row(ids) {
			logits[id] = float32(math.Log(p))
		}
		d, err := c.Draw(0, logits, len(ids)+1)
		if err != nil {
			t.Fatal(err)
		}
		c.Append([]token.ID{d.ID}, false)
		ids = append(ids, d.ID)
	}
	return ids
}

// TestHealCard draws behind the byte a of the worked example: b comes with probability .6250, where the token a gives it none.
func TestHealCard(t *testing.T) {
	text := toy(t, tokenizer.Vocab{Model: "gpt2", Pre: "gpt-2", Tokens: []string{"a", "b", "ab", ")"}, Merges: []string{"a b"}})
	v, err := New(text, text.Size())
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.Heal([]token.ID{3, 0}) // ")a"
	if err != nil || h.Left != 1 || string(h.Head) != "a" {
		t.Fatalf("%d tokens are left, and the head is %q (%v)", h.Left, h.Head, err)
	}
	m := &bracketed{}
	if err := h.Weigh(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	const seeds = 20000
	counts := map[string]float64{}
	for seed := range uint64(seeds) {
		ids := draw(t, h, m, seed, 1, 2)
		counts[(v.Text(ids) + ".")[1:2]]++ // the byte behind the first; a point for the end
		if again := draw(t, h, m, seed, 1, 2); !slices.Equal(ids, again) {
			t.Fatalf("seed %d gives %v and %v", seed, ids, again)
		}
	}
	for next, want := range map[string]float64{"b": .6250, "a": .3375, ".": .0375} {
		if got := counts[next] / seeds; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/seeds) {
			t.Errorf("%s comes with frequency %v, want %v", next, got, want)
		}
	}
}

// bracketed is the model of the worked example with a bracket that never comes: a, b, ab, bracket, end.
type bracketed struct{}

func (bracketed) row(path []token.ID) []float64 {
	if len(path) == 0 {
		return []float64{.3, .2, .5, 0, 0}
	}
	return []float64{.4, 0, .5, 0, .1}
}

// Probs implements [Model].
func (b bracketed) Probs(_ context.Context, paths [][]token.ID) (all [][]float64, err error) {
	for _, p := range paths {
		all = append(all, b.row(p))
	}
	return all, nil
}

// TestHealShares compares the probabilities of the draws with the shares of the covers, by enumerating these, behind every text of some bytes.
func TestHealShares(t *testing.T) {
	for name, text := range toys(t) {
		t.Run(name, func(t *testing.T) {
			v, err := New(text, text.Size())
			if err != nil {
				t.Fatal(err)
			}
			m := &random{size: text.Size()}
			ref, healed := newReference(text, m), 0
			rng := rand.New(rand.NewPCG(5, 5))
			for range 100 {
				prompt := make([]byte, 1+rng.IntN(5))
				for i := range prompt {
					prompt[i] = ref.alpha[rng.IntN(len(ref.alpha))]
				}
				ids, err := v.encode(nil, prompt)
				if err != nil || len(ids) == 0 {
					continue
				}
				h, err := v.Heal(append([]token.ID{text.EOS()}, ids...))
				if err != nil {
					t.Fatal(err)
				}
				if len(h.Head) == 0 {
					continue
				}
				healed++
				stay := ids[:h.Left-1]
				if err := h.Weigh(t.Context(), behind{m, stay}); err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				chances(h, behind{m, stay}, nil, h.Start(nil), 1, func(path []token.ID, p float64) {
					whole := append(slices.Clip(stay), path...)
					if !ref.valid(whole) || len(v.Text(whole)) < len(prompt) || v.Text(whole)[:len(prompt)] != string(prompt) {
						t.Fatalf("behind %q the draw is %q", prompt, v.Text(whole))
					}
					want := 1.0
					for i, id := range whole {
						want *= m.row(whole[:i])[id]
					}
					all, _ := ref.p(prompt)
					if sum += p; math.Abs(p/(want/all)-1) > 1e-5 {
						t.Fatalf("behind %q the tokens %v have %v, want %v", prompt, whole, p, want/all)
					}
				})
				if math.Abs(sum-1) > 1e-5 {
					t.Fatalf("behind %q the draws sum to %v", prompt, sum)
				}
			}
			if healed < 5 {
				t.Errorf("%d prompts were healed", healed)
			}
		})
	}
}

// behind is a model behind tokens.
type behind struct {
	m    *random
	stay []token.ID
}

func (b behind) row(path []token.ID) []float64 { return b.m.row(append(slices.Clip(b.stay), path...)) }

// Probs implements [Model].
func (b behind) Probs(_ context.Context, paths [][]token.ID) (all [][]float64, err error) {
	for _, p := range paths {
		all = append(all, b.row(p))
	}
	return all, nil
}

// chances tells each sequence of draws up to a cover, and its probability.
func chances(h *Healing, m behind, path []token.ID, s sample.StageState, p float64, tell func([]token.ID, float64)) {
	if s == 0 {
		tell(path, p)
		return
	}
	logits, sum := make([]float32, m.m.size), 0.0
	for id, q := range m.row(path) {
		logits[id] = float32(math.Log(q))
	}
	h.Apply(s, logits)
	for _, l := range logits {
		sum += math.Exp(float64(l))
	}
	for id, l := range logits {
		if q := math.Exp(float64(l)) / sum; q > 0 {
			chances(h, m, append(slices.Clip(path), token.ID(id)), h.Next(s, token.ID(id)), p*q, tell)
		}
	}
}
