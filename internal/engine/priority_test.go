package engine_test

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"grove/internal/engine"
	"grove/internal/text/token"
)

// TestNoneStarves: beside an endless stream of the most urgent sequences, one of the least priority ends after a bounded number of them,
// with the tokens that it gets alone, where slots, pages or rows are scarce.
func TestNoneStarves(t *testing.T) {
	const most = 120 // urgent sequences
	for name, c := range map[string]engine.Config{
		"slots": {Context: 250, Seqs: 1, Queue: 20},
		"pages": {Context: 250, Seqs: 3, Queue: 20, Tokens: 250},
		"rows":  {Context: 250, Seqs: 3, Queue: 20, Chunk: 8},
	} {
		t.Run(name, func(t *testing.T) {
			want := draw(t, sequence(t, newEngine(t, c)), 10, text(150))
			e := newEngine(t, c)
			if c.Chunk > 0 {
				e.SetCost(lineCost(1e-9)) // steps are as large as they may be
			}
			var opened atomic.Int64
			var ended atomic.Bool
			var all sync.WaitGroup
			urgent := func(i int) error {
				s, err := e.NewSequence(engine.Answer{})
				if err != nil {
					return err
				}
				prompt := slices.Repeat([]token.ID{token.ID(i % 48), token.ID(i / 48 % 48)}, 40)
				err = errors.Join(s.SetTerms(engine.Terms{Priority: engine.MaxPriority}), s.Append(t.Context(), prompt))
				for range 3 {
					if err == nil {
						_, err = s.Next(t.Context())
					}
				}
				return errors.Join(err, s.Close())
			}
			for range 4 {
				all.Go(func() {
					for !ended.Load() {
						i := int(opened.Add(1))
						if i > most {
							return
						}
						if err := urgent(i); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for opened.Load() <= 4 {
				runtime.Gosched()
			}
			s := sequence(t, e)
			if err := s.SetTerms(engine.Terms{Priority: engine.MinPriority}); err != nil {
				t.Fatal(err)
			}
			got := draw(t, s, 10, text(150))
			n := opened.Load()
			ended.Store(true)
			all.Wait()
			if n > most {
				t.Errorf("the sequence of the least priority ended behind all of the %d urgent ones", most)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
