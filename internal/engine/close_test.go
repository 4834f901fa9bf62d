package engine_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"grove/diffuse"
	"grove/diffuse/fill"
	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/method"
)

// TestClose: a closed engine ends running calls and refuses others, drawn tokens among them; sequences can be closed.
func TestClose(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 2, Queue: 2})
	ready, busy := sequence(t, e), sequence(t, e)
	draw(t, ready, 3, text(20))
	var all sync.WaitGroup
	begun := make(chan struct{})
	all.Go(func() {
		err := busy.Append(t.Context(), text(20))
		close(begun)
		for err == nil && busy.Len() < e.Context() {
			if err = busy.Truncate(21 - 1); err == nil {
				_, err = busy.Next(t.Context())
			}
		}
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("a running call: %v", err)
		}
	})
	<-begun
	for range 2 {
		all.Go(e.Close)
	}
	all.Wait()
	_, next := ready.Next(t.Context())
	_, fork := ready.Fork(1)
	_, logits := ready.Logits(t.Context())
	_, open := e.NewSequence(engine.Answer{})
	s := diffuse.Settings{Length: 1}
	_, canvas := fill.OpenBoard(e, &s, 1, engine.Terms{})
	_, _, probe := e.Probe(t.Context(), engine.Probe{Rows: 1}, 1)
	states := e.States(t.Context(), text(3), reading.Reading{}, func([]float32) error { return nil })
	for i, err := range []error{
		next, fork, logits, open, canvas, probe, states, ready.Append(t.Context(), nil), ready.Truncate(1), ready.Follow(1), ready.Save(t.TempDir() + "/s"),
	} {
		expect(t, err, "engine: the model is closed", engine.ErrClosed)
		if t.Failed() {
			t.Fatalf("call %d", i)
		}
	}
	for _, s := range []*engine.Sequence{ready, busy} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		expect(t, s.Close(), "engine: the sequence is closed", engine.ErrClosed)
	}
}

// TestIdleSlot: a sequence that nobody calls for lends its slot to one that waits, and goes on with the same tokens.
func TestIdleSlot(t *testing.T) {
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 12, text(90))
	e := newEngine(t, engine.Config{Seqs: 1, Queue: 1})
	idle, s := sequence(t, e), sequence(t, e)
	got := draw(t, idle, 4, text(90))
	start := time.Now()
	draw(t, s, 3, text(30)[1:])
	if d := time.Since(start); d < 400*time.Millisecond {
		t.Errorf("the slot was taken after %v", d)
	}
	if got = append(got, draw(t, idle, 8)...); !slices.Equal(got, want) { // in turn
		t.Errorf("%v, want %v", got, want)
	}
	draw(t, s, 3)
	if n := e.Load().Preempted; n != 3 {
		t.Errorf("slots were taken %d times, want 3", n)
	}
}

// TestSlowDrafterKeepsSlot: a sequence whose drafter takes long is not idle.
func TestSlowDrafterKeepsSlot(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 1, Queue: 1})
	slow := true
	d := openDrafters(t, e, true, func() *drafter {
		return &drafter{draft: func(*drafter, *method.Tree) {
			if slow {
				time.Sleep(800 * time.Millisecond) // more than an idle sequence keeps its slot
				slow = false
			}
		}}
	})
	s, other := sequence(t, e), sequence(t, e)
	if err := s.SetDrafting(d, nil); err != nil {
		t.Fatal(err)
	}
	draw(t, s, 1, text(30))
	var waits sync.WaitGroup
	waits.Go(func() {
		if err := other.Append(t.Context(), text(30)); err != nil {
			t.Error(err)
		}
	})
	waiting(t, e, 1)
	draw(t, s, 1)
	if n := e.Load().Preempted; n != 0 {
		t.Errorf("the slot of a sequence that drafts was taken %d times", n)
	}
	waits.Wait()
}
