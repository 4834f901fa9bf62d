package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"grove/diffuse"
	"grove/internal/engine"
	"grove/internal/engine/plan"
	"grove/internal/engine/reading"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
)

// crowd is requests of all kinds on an engine with room for few of them, and what each gets alone.
type crowd struct {
	*testing.T
	e      *engine.Engine
	dir    string
	drafts *engine.Drafting
	want   [2][]sample.Token // behind text(150) and text(40)
	blocks bool              // the model fills them
	places []diffuse.Place   // of a canvas behind text(70)
}

const roomTokens = 40 // that a request draws

// TestRoom: no request that fits alone fails for its neighbours. Requests of all kinds run at once in a cache that holds one context
// and little more: each waits for its turn, loses its pages meanwhile and computes them again, and gets what it gets alone.
func TestRoom(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	rounds := 5
	if long {
		rounds = 25
	}
	for _, spec := range []modeltest.Spec{{Arch: "sdar", Shift: true, Context: 300}, {Arch: "gemma3", Layers: 7, Context: 300}} {
		b := newBed(t, few(), spec.File(t))
		for _, config := range []engine.Config{
			{Seqs: 4, Queue: 1000, Tokens: 300, Chunk: 40},
			{Seqs: 9, Queue: 1000, Tokens: 320},
		} {
			t.Run(fmt.Sprintf("%s %d seqs", spec.Arch, config.Seqs), func(t *testing.T) {
				c := &crowd{T: t, dir: t.TempDir(), blocks: spec.Arch == "sdar"}
				for i, n := range []int{150, 40} {
					c.want[i] = draw(t, sequence(t, b.engine(t, engine.Config{})), roomTokens, text(n))
				}
				c.e = b.engine(t, engine.Config{})
				if err := c.canvas(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.e = b.engine(t, config)
				c.drafts = openDrafters(t, c.e, true, oracles)
				c.e.SetCost(&engine.Cost{
					Rows: []int{1, 32}, Layers: []float64{1e-4, 3e-4}, Head: plan.Curve{X: []int{1, 32}, Y: []float64{0, 0}},
					Correction: []float64{1, 1},
				})
				c.fill(rounds)
			})
		}
	}
}

// fill runs the requests.
func (c *crowd) fill(rounds int) {
	ctx, end := context.WithTimeout(c.Context(), time.Minute) // for what waits for ever
	defer end()
	kinds := []struct {
		name string
		run  func(context.Context, *rand.Rand) error
	}{
		{"plain", c.plain}, {"plain", c.plain}, {"session", c.session}, {"session", c.session}, {"session", c.session},
		{"states", func(ctx context.Context, r *rand.Rand) error {
			return c.e.States(ctx, text(1+r.IntN(300)), reading.Reading{}, func([]float32) error { return nil })
		}},
		{"canvas", func(ctx context.Context, _ *rand.Rand) error { return c.canvas(ctx) }},
		{"canvas", func(ctx context.Context, _ *rand.Rand) error { return c.canvas(ctx) }},
		{"probe", func(ctx context.Context, r *rand.Rand) error {
			_, _, err := c.e.Probe(ctx, engine.Probe{Rows: 2, Depth: r.IntN(290), Layers: 1, Logits: 1}, 2)
			return err
		}},
	}
	var all sync.WaitGroup
	for i, k := range kinds {
		all.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			for range rounds {
				if err := k.run(ctx, r); err != nil {
					c.Errorf("%s: %v", k.name, err)
					return
				}
			}
		})
	}
	all.Wait()
	c.Logf("%+v", c.e.Load())
	if u, live, open := c.e.Held(); u.Used != 0 || live != 0 || open != 0 {
		c.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
	}
}

// open opens a sequence of some priority.
func (c *crowd) open(r *rand.Rand) (*engine.Sequence, error) {
	s, err := c.e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 9}})
	if err != nil {
		return nil, err
	}
	return s, s.SetTerms(engine.Terms{Priority: r.IntN(3) - 1})
}

// answer draws what a sequence gives behind its text and compares it; a fork of it goes on for a while.
func (c *crowd) answer(ctx context.Context, r *rand.Rand, s *engine.Sequence, want []sample.Token) (err error) {
	forkAt := r.IntN(3 * roomTokens)
	for i := range want {
		d, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if d.Token != want[i] {
			return fmt.Errorf("token %d is %v, want %v", i, d.Token, want[i])
		}
		if i != forkAt {
			continue
		}
		f, err := s.Fork(0)
		if errors.Is(err, engine.ErrBusy) {
			continue // it does not wait for a slot
		}
		if err != nil {
			return err
		}
		for k := i + 1; k < min(i+5, len(want)) && err == nil; k++ {
			if d, err = f.Next(ctx); err == nil && d.Token != want[k] {
				err = fmt.Errorf("token %d of a fork is %v, want %v", k, d.Token, want[k])
			}
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) plain(ctx context.Context, r *rand.Rand) error {
	s, err := c.open(r)
	if err != nil {
		return err
	}
	which, n := 0, 150
	if r.IntN(2) == 0 {
		which, n = 1, 40
	}
	if r.IntN(2) == 0 {
		err = s.SetDrafting(c.drafts, nil)
	}
	if err == nil {
		err = s.Append(ctx, text(n))
	}
	if err == nil {
		err = c.answer(ctx, r, s, c.want[which])
	}
	return errors.Join(err, s.Close())
}

// session answers two turns of a session, which others go on with at the same time.
func (c *crowd) session(ctx context.Context, r *rand.Rand) error {
	path := filepath.Join(c.dir, fmt.Sprint(r.IntN(4)))
	ids := text(150)
	for _, turn := range [][]sample.Token{c.want[0][:20], c.want[0][20:]} {
		s, err := c.open(r)
		if err != nil {
			return err
		}
		if err = s.AppendSaved(ctx, ids, path); err == nil {
			err = c.answer(ctx, r, s, turn)
		}
		if err == nil {
			err = s.Save(path)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
		for _, t := range turn {
			ids = append(ids, t.ID)
		}
	}
	return nil
}

// canvas fills blocks.
func (c *crowd) canvas(ctx context.Context) error {
	if !c.blocks {
		return nil
	}
	places, _, err := fillBlocks(ctx, c.e, text(70), 4, engine.Terms{})
	if c.places == nil {
		c.places = places
	}
	if err == nil && !slices.Equal(places, c.places) {
		err = errors.New("the places of a canvas differ")
	}
	return err
}

// TestStatesWindow: a text that is longer than what a window keeps has room by itself, and its states are those of any size of step.
func TestStatesWindow(t *testing.T) {
	b := newBed(t, 1, modeltest.Spec{Arch: "gemma3", Layers: 7, Context: 2048}.File(t))
	var want []float32
	for _, chunk := range []int{2048, 16} {
		var got []float32
		e := b.engine(t, engine.Config{Chunk: chunk, Context: 2048})
		keep := func(row []float32) error {
			got = append(got, row...)
			return nil
		}
		if err := errors.Join(e.States(t.Context(), text(1200), reading.Reading{}, keep), e.Logits(t.Context(), text(1200), 1190, keep)); err != nil {
			t.Errorf("steps of %d rows: %v", chunk, err)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("steps of %d rows give other states", chunk)
		}
	}
}
