package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/engine"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
)

// newRecurrent makes an engine for a model with recurrent layers.
func newRecurrent(t *testing.T, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := openRecurrent(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func openRecurrent(t *testing.T, c engine.Config) (*engine.Engine, error) {
	t.Helper()
	pool := par.New(2)
	t.Cleanup(pool.Close)
	return engine.New(modeltest.Recurrent{Attention: true, Vocab: 48, Context: 300}.Open(t, pool), pool, c)
}

// newLongRecurrent makes an engine with a context, of which a sixteenth lies between two states.
func newLongRecurrent(t *testing.T, context int) *engine.Engine {
	t.Helper()
	pool := par.New(1)
	t.Cleanup(pool.Close)
	e, err := engine.New(modeltest.Recurrent{Attention: true, Vocab: 48, Context: 4096}.Open(t, pool), pool, engine.Config{Context: context})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestRecurrentTexts expects the same draws of a text with recurrent layers whether it comes at once, in parts, in small steps,
// behind a prefix in the cache, from a file, in a fork, or once it was cut.
func TestRecurrentTexts(t *testing.T) {
	ids := text(140)
	want := draw(t, sequence(t, newRecurrent(t, engine.Config{})), 30, ids)
	expect := func(what string, got []sample.Token) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("parts", draw(t, sequence(t, newRecurrent(t, engine.Config{})), 30, ids[:1], ids[1:64], ids[64:129], ids[129:]))
	expect("small steps", draw(t, sequence(t, newRecurrent(t, engine.Config{Chunk: 7})), 30, ids))

	e := newRecurrent(t, engine.Config{Seqs: 4})
	first := sequence(t, e)
	expect("the first of an engine", draw(t, first, 30, ids))
	second := sequence(t, e)
	expect("behind a prefix", draw(t, second, 30, ids))
	if n := second.Reused(); n != 128 {
		t.Errorf("%d tokens were found in the cache, want 128", n)
	}
	path := filepath.Join(t.TempDir(), "text")
	if err := second.Save(path); err != nil {
		t.Fatal(err)
	}
	other := sequence(t, newRecurrent(t, engine.Config{}))
	if err := other.AppendSaved(t.Context(), ids, path); err != nil {
		t.Fatal(err)
	}
	expect("from a file", draw(t, other, 30))
	if !other.Restored() || other.Reused() != 128 {
		t.Errorf("%d tokens were read from a file", other.Reused())
	}
	for _, n := range []int{140, 139, 130, 128, 127, 70, 5, 0} {
		if err := second.Truncate(n); err != nil {
			t.Fatal(err)
		}
		expect("cut back", draw(t, second, 30, ids[n:]))
	}
	if err := second.Truncate(150); err != nil {
		t.Fatal(err)
	}
	fork, err := second.Fork(0)
	if err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*engine.Sequence{"a fork": fork, "its origin": second} {
		if got := draw(t, s, 20); !slices.Equal(got, want[10:]) {
			t.Errorf("%s: %v, want %v", what, got, want[10:])
		}
	}
}

// TestRecurrentTurns: in a long context too, a text that parts from another one near its end computes little again, and one that parts from it further back
// a part of the way.
func TestRecurrentTurns(t *testing.T) {
	pool := par.New(2)
	t.Cleanup(pool.Close)
	e, err := engine.New(modeltest.Recurrent{Vocab: 48, Context: 1 << 17}.Open(t, pool), pool, engine.Config{Context: 1 << 17, Tokens: 1 << 17, Seqs: 2})
	if err != nil {
		t.Fatal(err)
	}
	first := text(5000)
	s := sequence(t, e)
	draw(t, s, 1, first)
	s.Close()
	for _, c := range []struct{ same, least int }{{2300, 2048}, {4000, 3072}, {4700, 4608}, {4990, 4864}} {
		ids := append(slices.Clone(first[:c.same]), 47-first[c.same]%47)
		s := sequence(t, e)
		draw(t, s, 1, ids)
		if n := s.Reused(); n < c.least || n > c.same {
			t.Errorf("of %d equal tokens %d were found, want %d or more", c.same, n, c.least)
		}
		s.Close()
	}
}

// TestRecurrentPreempted expects texts that take each other's pages to be as they are alone.
func TestRecurrentPreempted(t *testing.T) {
	texts := [][]token.ID{text(200), append([]token.ID{1}, text(190)...)}
	var want [2][]sample.Token
	for i, ids := range texts {
		want[i] = draw(t, sequence(t, newRecurrent(t, engine.Config{})), 40, ids)
	}
	e := newRecurrent(t, engine.Config{Seqs: 2, Tokens: 300, Context: 300})
	seqs := []*engine.Sequence{sequence(t, e), sequence(t, e)}
	var got [2][]sample.Token
	for i, ids := range texts {
		got[i] = draw(t, seqs[i], 1, ids)
	}
	done := make(chan error)
	for i, s := range seqs {
		go func() {
			for range 39 {
				d, err := s.Next(context.Background())
				if err != nil {
					done <- err
					return
				}
				got[i] = append(got[i], d.Token)
			}
			done <- nil
		}()
	}
	for range seqs {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("text %d: %v, want %v", i, got[i], want[i])
		}
	}
	if e.Load().Preempted == 0 {
		t.Error("no text lost its pages")
	}
}

// TestRecurrentRefusals expects what recurrent layers cannot do to be refused by name.
func TestRecurrentRefusals(t *testing.T) {
	_, err := openRecurrent(t, engine.Config{Memory: 100_000})
	if !errors.Is(err, kv.ErrMemory) || !strings.Contains(err.Error(), "the states of recurrent layers take ") {
		t.Errorf("states beyond memory: %v", err)
	}
}

// TestRecurrentSteadyState expects plain decoding to allocate nothing.
func TestRecurrentSteadyState(t *testing.T) {
	s := sequence(t, newRecurrent(t, engine.Config{}))
	draw(t, s, 80, text(20))
	if n := testing.AllocsPerRun(50, func() { draw1(t, s) }); n > 0 {
		t.Errorf("%v allocations a token", n)
	}
}
