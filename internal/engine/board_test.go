package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"grove/diffuse"
	"grove/diffuse/fill"
	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
)

// blocks is a model of blocks that decodes plain texts too.
func blocks(t *testing.T) *bed {
	return newBed(t, few(), modeltest.Spec{Arch: "sdar", Shift: true, Context: 300}.File(t))
}

// fillBlocks fills 18 places behind a prompt, and returns them and how many tokens of the prompt were there.
func fillBlocks(ctx context.Context, e *engine.Engine, ids []token.ID, block int, t engine.Terms) (places []diffuse.Place, reused int, err error) {
	const vocabulary = 48
	s := diffuse.Settings{Length: 18, Native: 4, Block: block, Policy: "static", Mask: vocabulary - 1, Shift: true}
	if err := s.Check(); err != nil {
		return nil, 0, err
	}
	sampler, err := diffuse.NewSampler(diffuse.Draws{Settings: sample.Settings{Params: sample.Params{Temperature: 1, Seed: 3}}, Prompt: ids, Vocabulary: vocabulary}, false)
	if err != nil {
		return nil, 0, err
	}
	canvas, err := fill.OpenBoard(e, &s, len(ids), t)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, canvas.Close()) }()
	g, err := diffuse.New(ids, s, canvas, sampler)
	for err == nil && !g.Done() {
		err = g.Step(ctx)
	}
	if err != nil {
		return nil, 0, err
	}
	places = slices.Clone(g.Finished())
	for i := range places {
		places[i].Pass = 0 // a long prompt has passes of its own
	}
	return places, canvas.Reused(), nil
}

// TestBoard: blocks are filled while four texts of the same model are decoded, one of which has the same tokens as their prompt; all is as alone. A later board finds the keys of
// the first one, and one of another salt none.
func TestBoard(t *testing.T) {
	b := blocks(t)
	want, _, err := fillBlocks(t.Context(), b.engine(t, engine.Config{}), text(150), 4, engine.Terms{})
	if err != nil || len(want) != 18 {
		t.Fatalf("%d places, error %v", len(want), err)
	}
	var texts [4][]sample.Token
	for i := range texts {
		texts[i] = draw(t, sequence(t, b.engine(t, engine.Config{})), 40, text(150-30*i))
	}
	e := b.engine(t, engine.Config{Seqs: 5})
	var all sync.WaitGroup
	for i := range texts {
		s := sequence(t, e)
		all.Go(func() {
			if err := s.Append(t.Context(), text(150-30*i)); err != nil {
				t.Error(err)
			}
			for k := range texts[i] {
				if got, err := s.Next(t.Context()); err != nil || got.Token != texts[i][k] {
					t.Errorf("sequence %d, token %d: %v, want %v: %v", i, k, got, texts[i][k], err)
					break
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range []struct {
		terms  engine.Terms
		reused int
	}{{engine.Terms{}, 0}, {engine.Terms{}, 128}, {engine.Terms{Salt: "other"}, 0}, {engine.Terms{Private: true}, 0}} {
		got, reused, err := fillBlocks(t.Context(), e, text(150), 4, c.terms)
		if err != nil || !slices.Equal(got, want) || reused != c.reused {
			t.Errorf("%+v: %v, want %v, %d tokens reused, error %v", c.terms, got, want, reused, err)
		}
	}
	if _, reused, err := fillBlocks(t.Context(), e, text(150), 2, engine.Terms{}); reused != 0 || err != nil {
		t.Errorf("shorter blocks: %d tokens reused, error %v", reused, err)
	}
	all.Wait()
	if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
		t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
	}
}

// TestBoardRefused: what no board has.
func TestBoardRefused(t *testing.T) {
	s := diffuse.Settings{Length: 18, Mask: 1}
	_, err := fill.OpenBoard(deep(t).engine(t, engine.Config{}), &s, 5, engine.Terms{})
	if err == nil || !strings.Contains(err.Error(), "llama is no diffusion model") {
		t.Errorf("another model: %v", err)
	}
	e := blocks(t).engine(t, engine.Config{})
	if _, err := fill.OpenBoard(e, &s, 290, engine.Terms{}); !errors.Is(err, engine.ErrContext) {
		t.Errorf("a long text: %v", err)
	}
	canvas, err := fill.OpenBoard(e, &s, 5, engine.Terms{})
	if err != nil {
		t.Fatal(err)
	}
	defer canvas.Close()
	if err := canvas.Pass(t.Context(), [][]diffuse.Row{make([]diffuse.Row, 301)}, 0); err == nil || !strings.Contains(err.Error(), "a pass of 301 rows: a step has") {
		t.Errorf("a large pass: %v", err)
	}
}

// TestBlocksOfOne: the logits of the next token are those of a pass over blocks of one token, at the mask behind the text, or with a shifted head before it. Such a text is decoded as
// any other: with drafts of all kinds, among others.
func TestBlocksOfOne(t *testing.T) {
	for _, shift := range []bool{false, true} {
		b := newBed(t, few(), modeltest.Spec{Arch: "sdar", Shift: shift, Context: 300, Layers: 4}.File(t))
		e := b.engine(t, engine.Config{Seqs: 2, Chunk: 32})
		s := sequence(t, e)
		canvas, err := fill.OpenBoard(e, &diffuse.Settings{Length: 1, Native: 4, Block: 1}, 70, engine.Terms{})
		if err != nil {
			t.Fatal(err)
		}
		for at, id := range text(70) {
			if err := s.Append(t.Context(), []token.ID{id}); err != nil {
				t.Fatal(err)
			}
			want, err := s.Logits(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rows := []diffuse.Row{{Place: at, ID: id, Block: at, Want: shift}, {Place: at + 1, ID: 47, Block: at + 1, Want: !shift}}
			if err := canvas.Pass(t.Context(), [][]diffuse.Row{rows}, 1); err != nil {
				t.Fatal(err)
			}
			row := 1
			if shift {
				row = 0
			}
			if !slices.Equal(canvas.Logits(0, row), want) {
				t.Fatalf("shift %v: other logits behind %d tokens", shift, at+1)
			}
		}
		if err := errors.Join(canvas.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		full := sequence(t, e)
		if err := full.Append(t.Context(), text(299)); err != nil {
			t.Fatal(err)
		}
		if _, err := full.Next(t.Context()); err != nil {
			t.Errorf("shift %v: the last token: %v", shift, err)
		}
		if _, err := full.Next(t.Context()); !errors.Is(err, engine.ErrContext) {
			t.Errorf("shift %v: beyond the context: %v", shift, err)
		}
		if err := full.Close(); err != nil {
			t.Fatal(err)
		}
		among(t, b, oracles, false)
		among(t, b, oracles, true)
	}
}
