package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/internal/turns"
)

// reserved returns the tokens of a sequence and of n forks of it, which all have a slot, behind a prompt.
func reserved(ctx context.Context, e *engine.Engine, n int, prompt []token.ID) (all [][]token.ID, err error) {
	s, err := e.NewSequence(engine.Answer{})
	if err != nil {
		return nil, err
	}
	members := []*engine.Sequence{s}
	defer func() {
		for _, s := range members {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.Append(ctx, prompt); err != nil {
		return nil, err
	}
	if err := engine.ReserveSlots(ctx, s, n); err != nil {
		return nil, err
	}
	for i := range n {
		f, err := s.Fork(i + 1)
		if err != nil {
			return nil, err
		}
		members = append(members, f)
	}
	for i, s := range members {
		var ids []token.ID
		if err := s.Follow(token.ID(i)); err != nil {
			return nil, err
		}
		for range 5 {
			d, err := s.Next(ctx)
			if err != nil {
				return nil, err
			}
			ids = append(ids, d.ID)
		}
		all = append(all, ids)
	}
	return all, nil
}

// TestReserve: families that need several slots at once, of several sizes and beside sequences alone, wait for them, and get the tokens that they get alone.
func TestReserve(t *testing.T) {
	c := engine.Config{Context: 250, Seqs: 4, Queue: 40}
	alone, e := newEngine(t, c), newEngine(t, c)
	var all sync.WaitGroup
	for i := range 24 {
		n, prompt := i%4, slices.Repeat([]token.ID{token.ID(i % 48), 7}, 20+i)
		want, err := reserved(t.Context(), alone, n, prompt)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			got, err := reserved(t.Context(), e, n, prompt)
			if err != nil || !slices.EqualFunc(got, want, slices.Equal[[]token.ID]) {
				t.Errorf("%d forks: %v, want %v; %v", n, got, want, err)
			}
		})
	}
	all.Wait()
	if usage, live, open := e.Held(); usage.Used != 0 || live != 0 || open != 0 {
		t.Errorf("behind all there are %v, %d, %d", usage, live, open)
	}
	s := sequence(t, e)
	draw(t, s, 1, text(3))
	if err := engine.ReserveSlots(t.Context(), s, 4); err == nil {
		t.Error("five slots of four are reserved")
	}
}

// TestReserveNotStarved: a stream of sequences alone does not keep a family from its slots.
func TestReserveNotStarved(t *testing.T) {
	e := newEngine(t, engine.Config{Context: 250, Seqs: 3, Queue: 20})
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for !stop.Load() {
				if _, err := reserved(t.Context(), e, 0, text(100)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := reserved(ctx, e, 2, text(90))
	stop.Store(true)
	all.Wait()
	if err != nil {
		t.Error(err)
	}
}

// TestReserveCancelled: a family that no longer waits holds nothing, and lets others go on.
func TestReserveCancelled(t *testing.T) {
	e := newEngine(t, engine.Config{Context: 250, Seqs: 2, Queue: 20})
	holder := sequence(t, e)
	draw(t, holder, 1, text(70))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := reserved(ctx, e, 1, text(40))
		done <- err
	}()
	time.Sleep(10 * time.Millisecond)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := reserved(t.Context(), e, 0, text(40)); err != nil {
		t.Error(err)
	}
	if err := holder.Close(); err != nil {
		t.Error(err)
	}
}

// TestTurns: of one slot and 64 sequences of ann that wait, bob's first is the next but one at the latest, and his second waits for one of ann's.
func TestTurns(t *testing.T) {
	e := newEngine(t, engine.Config{Context: 250, Seqs: 1, Queue: 80})
	var order []string // as they had the slot
	var mu sync.Mutex
	var all sync.WaitGroup
	ask := func(owner string) {
		all.Go(func() {
			s, err := e.NewSequence(engine.Answer{})
			if err == nil {
				err = s.Append(turns.With(t.Context(), owner), text(30))
			}
			mu.Lock()
			order = append(order, owner)
			mu.Unlock()
			if err = errors.Join(err, s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	first := sequence(t, e)
	draw(t, first, 1, text(10))
	waiting := func(n int) {
		for e.Load().Waiting < n {
			time.Sleep(time.Millisecond)
		}
	}
	for i := range 64 {
		ask("ann")
		waiting(min(i, 1))
	}
	waiting(64)
	ask("bob")
	waiting(65)
	ask("bob")
	waiting(66)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if at := slices.Index(order, "bob"); at > 1 || !slices.Contains(order[at+1:at+3], "ann") || !slices.Contains(order[:6], "bob") {
		t.Errorf("bob at %d: %q", at, order)
	}
	if rest := order[slices.Index(order, "bob")+1:]; slices.Index(rest, "bob") > 4 {
		t.Errorf("bob's second waits for many of ann's: %q", order[:10])
	}
}
