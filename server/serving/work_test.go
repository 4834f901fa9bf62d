package serving

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"grove/server/wire"
)

// TestWork: requests that read bodies in parts and work on them all end, though there is no memory for them at once, and never hold more
// than there is.
func TestWork(t *testing.T) {
	const most = 1 << 20
	w := newWork(func() int64 { return most })
	var working, turns atomic.Int64
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			h := w.Hold()
			defer h.Release()
			whole := 1 + random.Int64N(most/4/bodyWork)
			for n := int64(1); ; n = min(2*n, whole) {
				if err := h.Body(t.Context(), n); err != nil {
					t.Errorf("reading %d of %d: %v", n, whole, err)
					return
				}
				if n == whole {
					break
				}
			}
			for range 2 {
				err := h.Do(t.Context(), func() error {
					working.Add(bodyWork * whole)
					turns.Add(1)
					if n := working.Load(); n > most {
						t.Errorf("%d bytes are worked on", n)
					}
					turns.Add(-1)
					working.Add(-bodyWork * whole)
					return nil
				})
				if err != nil {
					t.Errorf("working on %d: %v", whole, err)
				}
			}
		})
	}
	all.Wait()
	last := w.memory.Hold()
	if err := last.Set(t.Context(), most/2); err != nil {
		t.Errorf("the memory was not given back: %v", err)
	}
}

// TestWorkWaits: a small request does not wait for a large one that waits; leaving ends the wait; a body that never fits is refused by name.
func TestWorkWaits(t *testing.T) {
	const most = 64 << 20
	w := newWork(func() int64 { return most })
	held := w.Hold
	busy, waiting, small := []*Held{held(), held()}, held(), held()
	for _, h := range busy {
		if err := h.Body(t.Context(), most/4/bodyHeld); err != nil {
			t.Fatal(err)
		}
	}
	first := held()
	if err := first.Body(t.Context(), most/bodyWork/4); err != nil { // the quarter for the oldest
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	left := make(chan error)
	go func() { left <- waiting.Body(ctx, most/bodyWork/4) }()
	if err := small.Body(t.Context(), 100); err != nil {
		t.Error(err)
	}
	if err := small.Do(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
	cause := errors.New("the client has left")
	cancel(cause)
	if err := <-left; !errors.Is(err, cause) {
		t.Error(err)
	}
	for _, h := range append(busy, waiting, small) {
		h.Release()
	}
	first.Release()
	if err := w.memory.Hold().Set(t.Context(), most/2); err != nil {
		t.Errorf("the memory was not given back: %v", err)
	}
	var refusal *wire.Error
	huge := held()
	huge.body = most
	if err := huge.Do(t.Context(), func() error { return nil }); !errors.As(err, &refusal) || refusal.Code != "memory_limit" || !strings.Contains(err.Error(), "67108864") {
		t.Errorf("a body that does not fit: %v", err)
	}
}
