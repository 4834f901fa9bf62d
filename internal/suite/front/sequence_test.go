package front_test

import (
	"errors"
	"slices"
	"testing"

	"grove"
	"grove/internal/text/token"
)

// answerIDs returns the tokens of an answer.
func answerIDs(a answer, _ grove.Stats) (ids []token.ID) {
	for _, tok := range a.Tokens {
		if tok.ID != token.None { // the rest of the text
			ids = append(ids, tok.ID)
		}
	}
	return ids
}

// drawn draws n tokens of a sequence.
func drawn(t *testing.T, s *grove.Sequence, n int) (ids []token.ID) {
	t.Helper()
	for range n {
		d, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.ID)
	}
	return ids
}

// TestSequence: a sequence draws what Generate gives, a fork what another sample of the request gives, with drafts
// and without.
func TestSequence(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	m := open(t, goldenModel, grove.Options{Parallel: 3, Eager: true})
	for _, method := range []string{grove.MethodOff, grove.MethodAuto} {
		r := request(4)
		r.Sampling, r.MaxTokens, r.IgnoreEnd, r.Method = grove.DefaultSampling(), 30, true, method
		var want [2][]token.ID
		for i := range want {
			r.SampleIndex = i
			want[i] = answerIDs(generate(t, m, r))
		}
		r.SampleIndex = 0
		s, err := m.NewSequence(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Fork(1)
		if err != nil {
			t.Fatal(err)
		}
		if got := drawn(t, f, len(want[1])); !slices.Equal(got, want[1]) {
			t.Errorf("%s: the fork: %v, want %v", method, got, want[1])
		}
		got := drawn(t, s, len(want[0]))
		if !slices.Equal(got, want[0]) {
			t.Errorf("%s: %v, want %v", method, got, want[0])
		}
		if err := s.Truncate(s.Len() - 10); err != nil {
			t.Fatal(err)
		}
		if again := drawn(t, s, 10); !slices.Equal(again, got[len(got)-10:]) {
			t.Errorf("%s: cut back: %v, want %v", method, again, got[len(got)-10:])
		}
		f.CancelSiblings()
		if _, err := s.Next(t.Context()); !errors.Is(err, grove.ErrCancelled) {
			t.Errorf("%s: cancelled: %v", method, err)
		}
		if err := errors.Join(s.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var option *grove.OptionError
	if _, err := m.NewSequence(t.Context(), grove.Request{Prompt: "x", Search: "ffs"}); !errors.As(err, &option) {
		t.Errorf("a search: %v", err)
	}
}

// TestCombiner: two models draw one text from the mean of their logits; with one weight at zero the text is the other
// model's own.
func TestCombiner(t *testing.T) {
	a := open(t, goldenModel, grove.Options{Parallel: 2})
	b := open(t, goldenModel, grove.Options{Parallel: 1, CacheType: "f32"})
	r := request(4)
	r.Sampling, r.MaxTokens, r.Method, r.IgnoreEnd = grove.DefaultSampling(), 20, grove.MethodOff, true
	want := answerIDs(generate(t, a, r))
	steered := r
	steered.Prompt = "another prompt altogether"
	run := func(weight float32) (ids []token.ID) {
		c := &grove.Combiner{Combine: func(logits []float32, others [][]float32) {
			for i := range logits {
				logits[i] = float32((1-weight)*logits[i]) + float32(weight*others[0][i])
			}
		}}
		first, err := a.NewSequence(t.Context(), r, c.Stage())
		if err != nil {
			t.Fatal(err)
		}
		other, err := b.NewSequence(t.Context(), steered)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Join(first, other); err != nil {
			t.Fatal(err)
		}
		for range want {
			d, err := c.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, d.ID)
		}
		if err := errors.Join(first.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if got := run(0); !slices.Equal(got, want) {
		t.Errorf("weight 0: %v, want %v", got, want)
	}
	if got := run(0.5); slices.Equal(got, want) {
		t.Error("the other model changes nothing")
	}
	drafting, err := a.NewSequence(t.Context(), request(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := (&grove.Combiner{}).Join(drafting, drafting); err == nil {
		t.Error("a sequence that drafts was combined")
	}
	if err := drafting.Close(); err != nil {
		t.Fatal(err)
	}
}
