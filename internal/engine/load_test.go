package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/engine/plan"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// order is a request of the test of load, with the answer that it gets alone.
type order struct {
	prompt, more []token.ID // more is appended after some tokens
	after        int
	params       sample.Params
	terms        engine.Terms
	draft        int // 0: none, 1: what pays, 2: all drafts
	tokens       int
	stop         int           // cancelled when so many tokens are there; 0: never
	limit        time.Duration // of the request; 0: none
	pause        int           // how often the reader pauses, one in so many tokens; 0: never
	want         []sample.Token
	whole        []token.ID
}

// run draws an order's answer.
func (o *order) run(ctx context.Context, e *engine.Engine, d *engine.Drafting) (got []sample.Token, err error) {
	s, err := e.NewSequence(engine.Answer{Sampling: o.params})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.SetTerms(o.terms); err != nil {
		return nil, err
	}
	if d != nil {
		if err := s.SetDrafting(d, o.whole); err != nil {
			return nil, err
		}
	}
	if o.limit > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, o.limit)
		defer end()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.Append(ctx, o.prompt); err != nil {
		return nil, err
	}
	for len(got) < o.tokens {
		if o.more != nil && len(got) == o.after {
			if err := s.Append(ctx, o.more); err != nil {
				return got, err
			}
		}
		c, err := s.Next(ctx)
		if err != nil {
			return got, err
		}
		got = append(got, c.Token)
		if len(got) == o.stop {
			cancel()
		}
		if o.pause > 0 && len(got)%o.pause == 0 {
			time.Sleep(time.Duration(len(got)%7) * 100 * time.Microsecond)
		}
	}
	return got, nil
}

// bed is a model that engines of several sizes are made for.
type bed struct {
	pool *par.Pool
	m    model.Model
}

func newBed(t testing.TB, threads int, f *gguf.File) *bed {
	t.Helper()
	pool := par.New(threads)
	t.Cleanup(pool.Close)
	m, err := model.Open(f, pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &bed{pool, m}
}

func (b *bed) engine(t testing.TB, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(b.m, b.pool, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// orders makes up requests, many of which begin alike, and answers each alone on an engine of its own.
func (b *bed) orders(t testing.TB, r *rand.Rand, n int, cache tensor.Type) []*order {
	t.Helper()
	var all []*order
	for i := range n {
		o := &order{tokens: 1 + r.IntN(80), draft: r.IntN(3)}
		o.prompt = append(o.prompt, text(r.IntN(3)*70)...)
		for range 1 + r.IntN(60) {
			o.prompt = append(o.prompt, token.ID(r.IntN(48)))
		}
		if i > 0 && r.IntN(3) == 0 {
			o.prompt = all[r.IntN(i)].prompt
		}
		o.params = sample.Params{Temperature: []float32{0, 0.8, 1.3}[r.IntN(3)], TopK: r.IntN(2) * 20, Seed: r.Uint64()}
		o.terms.Priority = r.IntN(5) - 2
		if r.IntN(8) == 0 {
			o.terms.Salt = "other"
		}
		if r.IntN(4) == 0 {
			o.more, o.after = text(20)[:1+r.IntN(19)], r.IntN(o.tokens)
		}
		if r.IntN(3) == 0 {
			o.pause = 1 + r.IntN(5)
		}
		var err error
		if o.want, err = o.run(t.Context(), b.engine(t, engine.Config{CacheType: cache}), nil); err != nil {
			t.Fatal(err)
		}
		o.whole = slices.Clone(o.prompt)
		if s := b.m.Info().Source; s != nil {
			o.whole = append(o.whole, s.Start) // as drafters read it
		}
		for i, c := range o.want {
			if o.more != nil && i == o.after {
				o.whole = append(o.whole, o.more...)
			}
			o.whole = append(o.whole, c.ID)
		}
		switch r.IntN(6) {
		case 0:
			o.stop = 1 + r.IntN(o.tokens)
		case 1:
			o.limit = time.Duration(r.IntN(3000)) * time.Microsecond
		}
		all = append(all, o)
	}
	return all
}

// TestEqualUnderLoad runs requests of all kinds at once, some cancelled midway, on engines with much and little room,
// and expects of each the tokens and log-probabilities that it gets alone, and in the end an empty cache.
func TestEqualUnderLoad(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	rounds, n := 1, 40
	if long {
		rounds, n = 3, 200
	}
	b := newBed(t, 2, modeltest.Spec{Context: 300}.File(t))
	for round := range rounds {
		for _, c := range []engine.Config{
			{Seqs: 8, Queue: n},
			{Seqs: 3, Queue: n, Chunk: 20, CacheType: tensor.F16},
			{Seqs: 6, Queue: n, Tokens: 300, Chunk: 64},
			{Seqs: 8, Queue: n, Tokens: 320, Chunk: 9, CacheType: tensor.Q8_0},
		} {
			t.Run(fmt.Sprintf("%d/%d seqs %d tokens %d rows", round, c.Seqs, c.Tokens, c.Chunk), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(round), uint64(c.Seqs)))
				underLoad(t, b, c, b.orders(t, r, n, c.CacheType))
			})
		}
	}
}

func underLoad(t *testing.T, b *bed, c engine.Config, orders []*order) {
	e := b.engine(t, c)
	drafts := []*engine.Drafting{nil, openDrafters(t, e, false, oracles), openDrafters(t, e, true, oracles)}
	e.SetCost(&engine.Cost{
		Rows: []int{1, 32}, Layers: []float64{1e-4, 3e-4}, Head: plan.Curve{X: []int{1, 32}, Y: []float64{0, 0}},
		Correction: []float64{1, 1},
	})
	r := rand.New(rand.NewPCG(5, uint64(c.Seqs)))
	var all sync.WaitGroup
	for i, o := range orders {
		if wait := r.IntN(10); wait > 5 {
			time.Sleep(time.Duration(wait) * 100 * time.Microsecond)
		}
		all.Go(func() {
			got, err := o.run(t.Context(), e, drafts[o.draft])
			switch {
			case o.stop > 0 && o.stop < o.tokens || o.limit > 0:
				if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("request %d: %v", i, err)
				}
			case err != nil:
				t.Errorf("request %d: %v", i, err)
			case len(got) != len(o.want):
				t.Errorf("request %d: %d tokens, want %d", i, len(got), len(o.want))
			}
			if !slices.Equal(got, o.want[:len(got)]) {
				t.Errorf("request %d: %v, want %v", i, got, o.want)
			}
		})
	}
	all.Wait()
	t.Logf("%+v", e.Load())
	if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
		t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
	}
}
