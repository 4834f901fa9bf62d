package engine_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/text/token"
)

// TestBecome: a copy goes on as a fork with its sample index does, whatever both were before, and the pages of what it was are free.
func TestBecome(t *testing.T) {
	for _, drawn := range [][2]int{{0, 0}, {5, 3}, {70, 3}, {3, 70}} {
		e := newEngine(t, engine.Config{Seqs: 3})
		s := sequence(t, e)
		draw(t, s, 0, text(130))
		f, err := s.Fork(4)
		if err != nil {
			t.Fatal(err)
		}
		draw(t, s, drawn[0])
		draw(t, f, drawn[1])
		again, err := s.Fork(4)
		if err != nil {
			t.Fatal(err)
		}
		want := draw(t, again, 12)
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Become(s); err != nil {
			t.Fatal(err)
		}
		if got := draw(t, f, 12); !slices.Equal(got, want) || f.Len() != 130+drawn[0]+12 {
			t.Errorf("%v tokens drawn: %v, want %v", drawn, got, want)
		}
		if err := s.Become(s); err != nil {
			t.Error(err)
		}
		other := sequence(t, e)
		if other.Become(s) == nil {
			t.Error("a sequence becomes one of another family")
		}
		for _, o := range []*engine.Sequence{s, f, other} {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
		if f.Become(s) == nil {
			t.Error("a closed sequence becomes another")
		}
		if l := e.Load(); l.Open != 0 || l.Admitted != 0 || l.Pages.Used != 0 {
			t.Errorf("behind the sequences there are %+v", l)
		}
	}
}

// TestProbs: the probabilities of the draw sum to 1, and a token that is described has the log-probability of one that is drawn.
func TestProbs(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 2})
	s := sequence(t, e)
	draw(t, s, 3, text(20))
	for range 5 {
		p, err := s.Probs(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, v := range p {
			sum += v
		}
		f, err := s.Fork(0)
		if err != nil {
			t.Fatal(err)
		}
		drawn, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := s.Len()
		told, err := s.Describe(t.Context(), drawn.ID)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(math.Log(p[drawn.ID])-float64(drawn.Logprob)) > 1e-5 || told.Token != drawn.Token || s.Len() != n {
			t.Errorf("sum %v, token %v with %v, described as %v", sum, drawn.Token, p[drawn.ID], told.Token)
		}
		if err := s.Follow(token.ID(drawn.ID)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBecomeWithoutSlot: a sequence whose slot was taken while nobody called for it becomes another, and another becomes it.
func TestBecomeWithoutSlot(t *testing.T) {
	for _, taken := range []string{"the copy", "the original"} {
		e := newEngine(t, engine.Config{Seqs: 2})
		s := sequence(t, e)
		draw(t, s, 2, text(70))
		want, err := s.Fork(4)
		if err != nil {
			t.Fatal(err)
		}
		tokens := draw(t, want, 6)
		if err := want.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := s.Fork(4)
		if err != nil {
			t.Fatal(err)
		}
		draw(t, f, 3)
		time.Sleep(600 * time.Millisecond) // both are idle
		busy := f
		if taken == "the copy" {
			busy = s
		}
		if _, err := busy.Logits(t.Context()); err != nil {
			t.Fatal(err)
		}
		draw(t, busy, 0, text(1))
		if err := busy.Truncate(busy.Len() - 1); err != nil {
			t.Fatal(err)
		}
		other := sequence(t, e)
		draw(t, other, 1, text(9)) // takes the slot of the one that is idle
		if err := other.Close(); err != nil || e.Load().Preempted == 0 {
			t.Fatalf("%v; no slot was taken: %+v", err, e.Load())
		}
		if err := f.Become(s); err != nil {
			t.Fatal(err)
		}
		if got := draw(t, f, 6); !slices.Equal(got, tokens) {
			t.Errorf("%s has no slot: %v, want %v", taken, got, tokens)
		}
		for _, o := range []*engine.Sequence{s, f} {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
		if l := e.Load(); l.Open != 0 || l.Admitted != 0 || l.Pages.Used != 0 {
			t.Errorf("%s has no slot: behind the sequences there are %+v", taken, l)
		}
	}
}
