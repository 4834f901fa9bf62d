package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
	"grove/method"
)

func newEngine(t *testing.T, c engine.Config) *engine.Engine {
	t.Helper()
	pool := par.New(1)
	t.Cleanup(pool.Close)
	m, err := model.Open(modeltest.Spec{Context: 300}.File(t), pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, pool, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func sequence(t *testing.T, e *engine.Engine) *engine.Sequence {
	t.Helper()
	s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 9}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(n int) []token.ID {
	ids := make([]token.ID, n)
	for i := range ids {
		ids[i] = token.ID((i*17 + 5) % 48)
	}
	return ids
}

// draw draws n tokens behind a text that is appended in the given parts.
func draw(t *testing.T, s *engine.Sequence, n int, parts ...[]token.ID) (got []sample.Token) {
	t.Helper()
	for _, ids := range parts {
		if err := s.Append(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		c, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c.Token)
	}
	return got
}

// TestAppendInParts expects the same draws whether a text comes at once, in parts, or as tokens that
// the model drew itself.
func TestAppendInParts(t *testing.T) {
	ids := text(140)
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 20, ids)
	for _, parts := range [][][]token.ID{
		{ids[:1], ids[1:]}, {ids[:64], nil, ids[64:128], ids[128:]}, {ids[:139], ids[139:]},
	} {
		if got := draw(t, sequence(t, newEngine(t, engine.Config{Chunk: 9})), 20, parts...); !slices.Equal(got, want) {
			t.Errorf("in %d parts: %v, want %v", len(parts), got, want)
		}
	}
	e := newEngine(t, engine.Config{Seqs: 2})
	drawn := slices.Clone(ids)
	for _, c := range want[:7] {
		drawn = append(drawn, c.ID)
	}
	if got := draw(t, sequence(t, e), 13, drawn); !slices.Equal(got, want[7:]) {
		t.Errorf("behind drawn tokens: %v, want %v", got, want[7:])
	}
	s := sequence(t, e)
	if got := draw(t, s, 20, ids); !slices.Equal(got, want) || s.Reused() != 128 || s.Len() != 160 {
		t.Errorf("%d of %d tokens reused while another sequence holds them: %v, want %v", s.Reused(), s.Len(), got, want)
	}
}

// TestInterleave draws from sequences in turns.
func TestInterleave(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 3})
	var seqs []*engine.Sequence
	var want, got [3][]sample.Token
	for i := range want {
		want[i] = draw(t, sequence(t, newEngine(t, engine.Config{})), 15, text(30 + 40*i)[i:])
		seqs = append(seqs, sequence(t, e))
		draw(t, seqs[i], 0, text(30 + 40*i)[i:])
	}
	for range 15 {
		for i, s := range seqs {
			got[i] = append(got[i], draw(t, s, 1)...)
		}
	}
	for i := range want {
		if !slices.Equal(want[i], got[i]) {
			t.Errorf("sequence %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func expect(t *testing.T, err error, want string, is error) {
	t.Helper()
	if err == nil || err.Error() != want || is != nil && !errors.Is(err, is) {
		t.Errorf("%v; want %s", err, want)
	}
}

// countdown is a context that is cancelled when it has been asked n times.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestGoOn expects a sequence whose Append or Next was cancelled to go on where it was.
func TestGoOn(t *testing.T) {
	ids := text(50)
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 3, ids)
	for n := range 16 {
		s := sequence(t, newEngine(t, engine.Config{Chunk: 20}))
		ctx := &countdown{t.Context(), n}
		err := s.Append(ctx, ids)
		var got []sample.Token
		for len(got) < len(want) {
			var c engine.SampledToken
			if err == nil {
				if c, err = s.Next(ctx); err == nil {
					got = append(got, c.Token)
				}
			}
			if err != nil {
				if !errors.Is(err, context.Canceled) || ctx.n >= 0 {
					t.Fatalf("cancelled after %d layers: %v", n, err)
				}
				ctx.n, err = math.MaxInt, nil
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("cancelled after %d layers: %v, want %v", n, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	e := newEngine(t, engine.Config{Context: 20})
	s := sequence(t, e)
	_, err := s.Next(t.Context())
	expect(t, err, "engine: the text is empty; append a prompt before the first draw", nil)
	expect(t, s.Append(t.Context(), text(21)), "engine: 21 tokens do not fit: the context is full of 20 tokens", engine.ErrContext)
	draw(t, s, 0, text(18))
	expect(t, s.Append(t.Context(), text(3)), "engine: 21 tokens do not fit: the context is full of 20 tokens", engine.ErrContext)
	if s.Len() != 18 {
		t.Errorf("%d tokens after a refusal, want 18", s.Len())
	}
	draw(t, s, 2)
	_, err = s.Next(t.Context())
	expect(t, err, "engine: 20 tokens: the context is full", engine.ErrContext)

	_, err = e.NewSequence(engine.Answer{})
	expect(t, err, "engine: 1 sequences: too many sequences are open", engine.ErrBusy)
	_, err = e.NewSequence(engine.Answer{Sampling: sample.Params{TopK: -1}})
	expect(t, err, "sample: top-k is -1; it must be 0 (off) or more", nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := sequence(t, e)
	expect(t, s.Close(), "engine: the sequence is closed", engine.ErrClosed)
	_, err = e.NewSequence(engine.Answer{})
	expect(t, err, "engine: 1 sequences: too many sequences are open", engine.ErrBusy)
	draw(t, other, 1, text(3))

	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	fresh := sequence(t, e)
	if err := fresh.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, fresh.Append(t.Context(), text(1)), "engine: the sequence is closed", engine.ErrClosed)
	other = sequence(t, e)
	draw(t, other, 1, text(3))
	expect(t, other.Append(t.Context(), []token.ID{48}), "engine: token id 48 at index 4 is out of range: the vocabulary has 48", nil)
}

// TestModelErrors expects a model that gives NaN to end a text, and the engine to go on.
func TestModelErrors(t *testing.T) {
	file := modeltest.Spec{Type: tensor.F32}.File(t)
	v, _ := file.Tensor("token_embd.weight")
	copy(v.Data[4*64*7:], []byte{0, 0, 0xc0, 0x7f}) // token 7
	pool := par.New(2)
	defer pool.Close()
	m, err := model.Open(file, pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s := sequence(t, e)
		draw(t, s, 0, []token.ID{1, 2, 3})
		if err := s.Append(t.Context(), []token.ID{4, 7, 5}); !errors.Is(err, compute.ErrNotFinite) {
			t.Errorf("a token without an embedding: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	draw(t, sequence(t, e), 0, []token.ID{1, 2, 3})
}

// TestSalt expects sequences to share a prefix only where their salts are equal.
func TestSalt(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 4})
	for _, tt := range []struct {
		salt   string
		reused int
	}{{"", 0}, {"", 128}, {"a", 0}, {"a", 128}, {"b", 0}, {"", 128}} {
		s, err := e.NewSequence(engine.Answer{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetTerms(engine.Terms{Salt: tt.salt}); err != nil {
			t.Fatal(err)
		}
		draw(t, s, 1, text(140))
		if s.Reused() != tt.reused {
			t.Errorf("salt %q: %d tokens reused, want %d", tt.salt, s.Reused(), tt.reused)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReports expects the likeliest tokens beside each that is drawn, the same with drafts and without, and
// the probabilities of the draw where these are asked for.
func TestReports(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, a := range []engine.Answer{
		{Top: 3}, {Top: 5, Sampling: sample.Params{Temperature: 1, TopK: 4, Seed: 3}, Penalties: sample.Penalties{Repeat: 1.5}},
		{Top: 5, PostSampling: true, Sampling: sample.Params{Temperature: 1, TopK: 4, Seed: 3}, Penalties: sample.Penalties{Presence: 1}},
	} {
		run := func(d *drafter) (got []engine.SampledToken) {
			e := newEngine(t, engine.Config{})
			s, err := e.NewSequence(a)
			if err != nil {
				t.Fatal(err)
			}
			if d != nil {
				all := drafting(t, e, d)
				cheapRows(e)
				if err := s.SetDrafting(all, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Append(t.Context(), text(20)); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				d, err := s.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, d)
			}
			return got
		}
		want := run(nil)
		got := run(&drafter{draft: func(d *drafter, tree *method.Tree) {
			at := method.Root
			for _, w := range want[len(d.h.IDs())-20 : min(len(want), len(d.h.IDs())-16)] {
				at = tree.Add(at, w.ID, 0, 0.9)
			}
		}})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("drafts change what is reported:\n%s", d)
		}
		for i, d := range want {
			sum := 0.0
			for _, c := range d.Top {
				if c.ID == d.ID && c.Logprob != d.Logprob {
					t.Errorf("token %d: log-probability %v, and %v among the likeliest", i, d.Logprob, c.Logprob)
				}
				sum += math.Exp(float64(c.Logprob))
			}
			if n := len(d.Top); a.PostSampling && (n > 4 || math.Abs(sum-1) > 1e-5) || !a.PostSampling && (n != a.Top || sum > 1) {
				t.Errorf("token %d: %d likely tokens, %v together", i, n, sum)
			}
		}
	}
}
