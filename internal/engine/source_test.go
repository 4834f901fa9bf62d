package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/internal/kv"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
	"grove/method"
)

// reader is a small encoder-decoder.
func reader(t *testing.T) *bed {
	t.Helper()
	return newBed(t, few(), modeltest.Spec{Arch: "t5", KVHeads: 4, Context: 300}.File(t))
}

// TestSourcesUnderLoad is [TestEqualUnderLoad] for an encoder-decoder, whose sequences lose slots and pages.
func TestSourcesUnderLoad(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	b := reader(t)
	for _, c := range []engine.Config{
		{Seqs: 8, Queue: 40},
		{Seqs: 2, Queue: 40, Tokens: 300, Chunk: 9, CacheType: tensor.Q8_0},
	} {
		t.Run(fmt.Sprintf("%d seqs %d tokens", c.Seqs, c.Tokens), func(t *testing.T) {
			underLoad(t, b, c, b.orders(t, rand.New(rand.NewPCG(7, uint64(c.Seqs))), 40, c.CacheType))
		})
	}
}

// TestSourceAnswers compares an answer with rows that are run directly, and the answers of forks, of a cut text and of a
// source that the cache has.
func TestSourceAnswers(t *testing.T) {
	b := reader(t)
	source := text(100)
	e := b.engine(t, engine.Config{Seqs: 3, CacheType: tensor.F32})
	s := sequence(t, e)
	want := draw(t, s, 70, source)
	if s.Len() != 71 || s.Reused() != 0 {
		t.Errorf("%d tokens, %d reused", s.Len(), s.Reused())
	}
	ids := []token.ID{b.m.Info().Source.Start}
	for _, c := range want {
		ids = append(ids, c.ID)
	}
	r := modeltest.NewFor(t, b.m, b.pool, modeltest.Config{Context: 300, CacheType: tensor.F32})
	r.Read(source)
	chain, err := sample.NewChain(sample.Settings{Params: sample.Params{Temperature: 1, Seed: 9}}, 48)
	if err != nil {
		t.Fatal(err)
	}
	chain.Begin(nil)
	for i, row := range r.Reference(ids[:70]) {
		if d, err := chain.Draw(0, row, i+1); err != nil || d != want[i] {
			t.Fatalf("token %d is %v, want %v (%v)", i, want[i], d, err)
		}
	}
	if err := s.Truncate(1); err != nil {
		t.Fatal(err)
	}
	f, err := s.Fork(0)
	if err != nil {
		t.Fatal(err)
	}
	for what, q := range map[string]*engine.Sequence{"a text that was cut": s, "a fork": f} {
		if got := draw(t, q, 70); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	again := sequence(t, e)
	if got := draw(t, again, 70, source); !slices.Equal(got, want) || again.Reused() != 100 {
		t.Errorf("a source that is stored, %d reused: %v, want %v", again.Reused(), got, want)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	other := sequence(t, e)
	if got := draw(t, other, 70, source[1:]); slices.Equal(got, want) || other.Reused() != 0 {
		t.Errorf("another source has the same answer, %d reused", other.Reused())
	}
}

// TestSourceStates expects an encoder-decoder to give its encoder's states.
func TestSourceStates(t *testing.T) {
	b := reader(t)
	source := text(90)
	want := modeltest.NewFor(t, b.m.Info().Source.Encoder, b.pool, modeltest.Config{Context: 300}).Encode(source)
	i := 0
	err := b.engine(t, engine.Config{}).States(t.Context(), source, reading.Reading{}, func(row []float32) error {
		if !slices.Equal(row, want[i]) {
			t.Errorf("state %d is %v, want %v", i, row, want[i])
		}
		i++
		return nil
	})
	if err != nil || i != len(source) {
		t.Errorf("%d states: %v", i, err)
	}
}

// TestSourceRefused goes through what an encoder-decoder does not do.
func TestSourceRefused(t *testing.T) {
	b := reader(t)
	e := b.engine(t, engine.Config{})
	s := sequence(t, e)
	session := filepath.Join(t.TempDir(), "s")
	for what, err := range map[string]error{
		"logits":  e.Logits(t.Context(), text(3), 0, nil),
		"session": s.AppendSaved(t.Context(), text(3), session),
		"save":    s.Save(session),
		"follow":  s.Follow(1),
		"branch":  func() error { _, err := e.Model().Open(); return err }(),
	} {
		if !errors.Is(err, engine.ErrSource) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, ids := range map[string][]token.ID{"no tokens": nil, "a token beyond": {48}, "too long": text(301)} {
		if err := s.Append(t.Context(), ids); err == nil || s.Len() != 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := engine.New(b.m, b.pool, engine.Config{Memory: uint64(e.CacheBytes() - 1)}); !errors.Is(err, kv.ErrMemory) {
		t.Errorf("a byte less than both caches take: %v", err)
	}
	e.Close()
	if err := s.Append(t.Context(), text(3)); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestSourceIsHistory expects drafters to read the source as earlier text.
func TestSourceIsHistory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	e := reader(t).engine(t, engine.Config{})
	source := text(20)
	saw := 0
	d := openDrafters(t, e, true, func() *drafter {
		return &drafter{draft: func(d *drafter, tree *method.Tree) {
			ids, h := d.h.IDs(), d.h
			if len(ids) < 22 || !slices.Equal(ids[:20], source) || ids[20] != 0 || h.SourceLen != 20 || h.PromptLen() != 21 {
				t.Errorf("the history is %v, of which %d are the source and %d the prompt", ids, h.SourceLen, h.PromptLen())
			}
			saw++
			tree.Add(method.Root, ids[1], 0, 0.5)
		}}
	})
	s := sequence(t, e)
	if err := s.SetDrafting(d, nil); err != nil {
		t.Fatal(err)
	}
	if draw(t, s, 9, source); saw == 0 {
		t.Error("nothing was drafted")
	}
}
