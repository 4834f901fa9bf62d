package programs

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"grove/internal/engine/reading"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/suite/searchtest"
	"grove/internal/text/token"
	"grove/search"
)

// statesOf returns the final states of a text, of a run of its own.
func statesOf(t *testing.T, m *searchtest.Toy, ids []token.ID) (all [][]float32) {
	t.Helper()
	err := m.Engine.States(t.Context(), ids, reading.Reading{}, func(row []float32) error { all = append(all, slices.Clone(row)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// cosine returns that of two vectors, by its definition.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// contrastiveReference is the method with runs of whole texts alone: it keeps nothing from one token to the next.
func contrastiveReference(t *testing.T, m *searchtest.Toy, c contrastive, tokens int) (all []sample.Token) {
	t.Helper()
	text := slices.Clone(searchtest.Prompt)
	chain, err := sample.NewChain(sample.Settings{}, m.Model.Info().Vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	for range tokens {
		var list []sample.Token
		err := m.Engine.Logits(t.Context(), text, len(text)-1, func(logits []float32) (err error) {
			list, err = chain.Top(logits, c.k)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		before := statesOf(t, m, text)
		before = before[max(0, len(before)-c.back):]
		best, most := 0, math.Inf(-1)
		for i, candidate := range list {
			alone := statesOf(t, m, append(slices.Clip(text), candidate.ID))
			like := math.Inf(-1)
			for _, h := range before {
				like = max(like, cosine(alone[len(alone)-1], h))
			}
			if score := (1-c.alpha)*math.Exp(float64(candidate.Logprob)) - c.alpha*like; score > most {
				best, most = i, score
			}
		}
		all, text = append(all, list[best]), append(text, list[best].ID)
	}
	return all
}

// TestContrastiveReference compares the search with one of separate runs: the same tokens with the same bits of their log-probabilities.
func TestContrastiveReference(t *testing.T) {
	for name, spec := range map[string]modeltest.Spec{"llama": {Context: 300}, "gemma2": {Arch: "gemma2", Context: 300}, "recurrent": {Arch: "mamba", Context: 300}} {
		t.Run(name, func(t *testing.T) {
			m := searchtest.Of(t, 2, spec)
			others := 0.0
			for _, c := range []contrastive{{4, .6, 4096}, {5, .8, 7}, {4, 0, 4096}, {1, .6, 4096}, {3, 1, 1}} {
				want := contrastiveReference(t, m, c, 24)
				before := m.Engine.Load()
				r, err := m.Run(t, fmt.Sprintf("contrastive,k=%d,alpha=%v,back=%d", c.k, c.alpha, c.back), 0, search.Problem{MaxTokens: 24})
				if err != nil {
					t.Fatal(err)
				}
				var got []sample.Token
				for _, d := range r.Tokens {
					got = append(got, d.Token)
				}
				if !slices.Equal(got, want) || r.Attempts[0].Tokens != 24 || r.Figures["tried_tokens"] != float64(24*c.k) {
					t.Errorf("%+v: %v, want %v; %v", c, got, want, r.Figures)
				}
				// The prompt, its states, and a step of k rows for each token.
				if now := m.Engine.Load(); now.Steps-before.Steps > 2+24 || now.Rows-before.Rows > 2*len(searchtest.Prompt)+24*c.k {
					t.Errorf("%+v: %d steps of %d rows", c, now.Steps-before.Steps, now.Rows-before.Rows)
				}
				if others += r.Figures["other_tokens"]; (c.alpha == 0 || c.k == 1) && r.Figures["other_tokens"] > 0 {
					t.Errorf("%+v: %v", c, r.Figures)
				}
			}
			if others == 0 {
				t.Error("the states change no token")
			}
		})
	}
}

// TestContrastiveGreedy: alpha=0 is greedy decoding, bit for bit.
func TestContrastiveGreedy(t *testing.T) {
	m := searchtest.Of(t, 2, modeltest.Spec{Context: 300})
	r, err := m.Run(t, "contrastive,alpha=0", 0, search.Problem{MaxTokens: 40})
	if err != nil {
		t.Fatal(err)
	}
	p, done := m.Problem(t, 0, search.Problem{})
	defer done()
	for i, got := range r.Tokens {
		want, err := p.First.Next(t.Context())
		if err != nil || want.Token != got.Token {
			t.Fatalf("token %d: %+v, greedily %+v, %v", i, got, want, err)
		}
	}
}

// TestContrastiveContext: the answer ends where the context is full.
func TestContrastiveContext(t *testing.T) {
	m := searchtest.Of(t, 1, modeltest.Spec{Context: 20})
	r, err := m.Run(t, "contrastive", 0, search.Problem{})
	if err != nil || len(r.Tokens) != 20-len(searchtest.Prompt) || r.Attempts[0].Ended {
		t.Errorf("%d tokens, %v", len(r.Tokens), err)
	}
}

// TestLikeness has cosines by hand; a later state takes the place of an earlier one.
func TestLikeness(t *testing.T) {
	var s states
	if got := s.likeness([]float32{1, 2}); got != 0 {
		t.Errorf("beside nothing: %v", got)
	}
	s.put(0, []float32{3, 0, 0, 0, 4})
	s.put(1, []float32{0, 0, 0, 0, 0})
	s.put(2, []float32{0, 2, 0, 0, 0})
	for _, tt := range []struct {
		state []float32
		want  float64
	}{{[]float32{6, 0, 0, 0, 8}, 1}, {[]float32{0, 0, 0, 0, 5}, .8}, {[]float32{0, 0, 1, 0, 0}, 0}, {[]float32{0, 9, 0, 0, 0}, 1}, {make([]float32, 5), 0}, {[]float32{-3, 0, 0, 0, -4}, 0}} {
		if got := s.likeness(tt.state); math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("of %v: %v, want %v", tt.state, got, tt.want)
		}
	}
	s.put(2, []float32{0, 0, 1, 0, 0})
	if got := s.likeness([]float32{0, 9, 0, 0, 0}); got != 0 || len(s.values) != 15 {
		t.Errorf("of one that is gone: %v of %d values", got, len(s.values))
	}
}

// TestContrastiveOpen reads options.
func TestContrastiveOpen(t *testing.T) {
	p, err := search.Open("contrastive,k=5,alpha=0.4,back=9")
	if err != nil || p.Samples() != 1 || p.(contrastive) != (contrastive{5, .4, 9}) || p.Check(&search.Problem{Slots: 1, Greedy: true}) != nil {
		t.Fatal(p, err)
	}
	for _, bad := range []string{"contrastive,k=0", "contrastive,k=17", "contrastive,alpha=1.1", "contrastive,alpha=NaN", "contrastive,back=0", "contrastive,n=2"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
