package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// manyContinuations are continuations with common beginnings, of one token, and of more tokens than a step has.
func manyContinuations() [][]token.ID {
	all := [][]token.ID{{3}, {3, 4, 5}, {3, 4, 9, 1}, {7, 7, 7}, {3, 4, 5}}
	long := text(170)
	return append(all, long, append(slices.Clone(long[:90]), 1, 2, 3), []token.ID{11, 12})
}

// plainScores scores a continuation alone, by the logits of each row of prefix and continuation.
func plainScores(t *testing.T, e *engine.Engine, prefix, ids []token.ID) (out []engine.ScoreToken) {
	t.Helper()
	chain, err := sample.NewChain(sample.Settings{}, 48)
	if err != nil {
		t.Fatal(err)
	}
	whole := slices.Concat(prefix, ids)
	err = e.Logits(t.Context(), whole[:len(whole)-1], len(prefix)-1, func(row []float32) error {
		id := ids[len(out)]
		d, err := chain.Draw(0, row, 0)
		out = append(out, engine.ScoreToken{ID: id, Logprob: chain.Logprob(row, id), Greedy: d.ID == id})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestScoreBits compares the scores of continuations with those of each alone, in steps of any size, with states and windows, and while
// other texts are decoded that take pages.
func TestScoreBits(t *testing.T) {
	prefix, all := text(75), manyContinuations()
	for name, spec := range map[string]modeltest.Spec{
		"llama": {Context: 300}, "windows": {Arch: "gemma2", Context: 300}, "recurrent": {Arch: "mamba", Context: 300},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, few(), spec.File(t))
			plain := b.engine(t, engine.Config{CacheType: tensor.F16})
			var want [][]engine.ScoreToken
			for _, ids := range all {
				want = append(want, plainScores(t, plain, prefix, ids))
			}
			for _, c := range []engine.Config{{}, {Chunk: 5}, {Chunk: 64, Seqs: 3, Tokens: 420}} {
				c.CacheType = tensor.F16
				e := b.engine(t, c)
				stop := busy(t, e, c.Seqs-1)
				for range 2 { // the prefix is found the second time
					got, _, err := e.Score(t.Context(), engine.ScoreRequest{Prefix: prefix, Continuations: all, Terms: engine.Terms{Priority: -9}})
					if err != nil {
						t.Fatal(err)
					}
					for i := range all {
						if !slices.Equal(got[i], want[i]) {
							t.Fatalf("%+v: continuation %d: %v, want %v", c, i, got[i], want[i])
						}
					}
				}
				stop()
				if n := e.Load(); n.Admitted != 0 {
					t.Fatalf("%d slots are taken afterwards", n.Admitted)
				}
			}
		})
	}
}

// busy decodes n texts beside what the test does, until the function that it returns is called.
func busy(t *testing.T, e *engine.Engine, n int) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range max(n, 0) {
		all.Go(func() {
			for ctx.Err() == nil {
				s, err := e.NewSequence(engine.Answer{})
				if err != nil {
					t.Error(err)
					return
				}
				err = s.Append(ctx, text(60+i))
				for err == nil && s.Len() < 290 {
					_, err = s.Next(ctx)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// TestScoreDecoded compares the log-probabilities that decoding reports with the scores of the decoded text, all tokens of which are greedy.
func TestScoreDecoded(t *testing.T) {
	e := newBed(t, 1, modeltest.Spec{Context: 300}.File(t)).engine(t, engine.Config{})
	s, err := e.NewSequence(engine.Answer{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), text(20)); err != nil {
		t.Fatal(err)
	}
	var ids []token.ID
	var want []engine.ScoreToken
	for range 30 {
		d, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids, want = append(ids, d.ID), append(want, engine.ScoreToken{ID: d.ID, Logprob: d.Logprob, Greedy: true})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, _, err := e.Score(t.Context(), engine.ScoreRequest{Prefix: text(20), Continuations: [][]token.ID{ids}})
	if err != nil || !slices.Equal(got[0], want) {
		t.Fatalf("%v, %v; want %v", got, err, want)
	}
}

// TestScoreSteps counts steps: continuations of one token need none besides the prefix, and those of a tree one.
func TestScoreSteps(t *testing.T) {
	for _, c := range []struct {
		all  [][]token.ID
		want uint64
	}{{[][]token.ID{{1}, {2}, {3}}, 1}, {[][]token.ID{{1, 2, 3}, {1, 5}, {7, 8, 9, 10}}, 2}} {
		e := newBed(t, 1, modeltest.Spec{Context: 300}.File(t)).engine(t, engine.Config{})
		if _, _, err := e.Score(t.Context(), engine.ScoreRequest{Prefix: text(40), Continuations: c.all}); err != nil {
			t.Fatal(err)
		}
		if n := e.Load().Steps; uint64(n) != c.want {
			t.Errorf("%d continuations take %d steps, want %d", len(c.all), n, c.want)
		}
	}
}

// TestScoreErrors checks each error, and that none keeps a slot.
func TestScoreErrors(t *testing.T) {
	e := newBed(t, 1, modeltest.Spec{Context: 60}.File(t)).engine(t, engine.Config{Seqs: 1})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	one := [][]token.ID{{1, 2}}
	for name, c := range map[string]struct {
		ctx  context.Context
		r    engine.ScoreRequest
		want string
	}{
		"no prefix":      {t.Context(), engine.ScoreRequest{Continuations: one}, "prefix of no tokens"},
		"empty":          {t.Context(), engine.ScoreRequest{Prefix: text(5), Continuations: [][]token.ID{{1}, {}}}, "continuation 1: engine: it has no tokens"},
		"no token":       {t.Context(), engine.ScoreRequest{Prefix: text(5), Continuations: [][]token.ID{{48}}}, "continuation 0: engine: token id 48 at index 5"},
		"long prefix":    {t.Context(), engine.ScoreRequest{Prefix: text(61), Continuations: one}, "61 tokens do not fit"},
		"long":           {t.Context(), engine.ScoreRequest{Prefix: text(59), Continuations: one}, "continuation 0: engine: 61 tokens do not fit"},
		"priority":       {t.Context(), engine.ScoreRequest{Prefix: text(5), Continuations: one, Terms: engine.Terms{Priority: 11}}, "priority is 11"},
		"context ended":  {cancelled, engine.ScoreRequest{Prefix: text(5), Continuations: one}, "context canceled"},
		"nothing to ask": {t.Context(), engine.ScoreRequest{Prefix: text(5)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := e.Score(c.ctx, c.r)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if n := e.Load(); n.Admitted != 0 || n.Open != 0 {
				t.Errorf("%d sequences are open, %d have a slot", n.Open, n.Admitted)
			}
		})
	}
}
