package serving

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"grove"
	"grove/server/wire"
	"grove/text/token"
)

// Host is an open model, and the answers that it computes. It is safe for concurrent use.
type Host struct {
	Name    string
	Model   *grove.Model
	Info    grove.Info
	Created time.Time

	pool   *Pool
	places atomic.Int64 // taken, by what is computed or waits

	mu      sync.Mutex
	running []*Slot // the oldest first
}

// Slot is what is known of a text that is computed.
type Slot struct {
	Request   string // the id of the request; "": nothing is computed
	Prompt    int    // tokens
	Generated int
}

func newHost(p *Pool, name string, m *grove.Model) *Host {
	return &Host{Name: name, Model: m, Info: m.Info(), Created: time.Now(), pool: p}
}

// bytes returns the memory that the model may take.
func (h *Host) bytes() uint64 { return uint64(h.Info.WeightBytes + h.Info.CacheBytes) }

// admit reserves n places, or refuses: there are as many as answers may be computed and queued.
func (h *Host) admit(n int) error {
	if h.pool.Ending() {
		return wire.ErrStopping
	}
	if most := int64(h.Info.Parallel + h.Info.Queue); h.places.Add(int64(n)) > most {
		h.release(n)
		return wire.ErrBusy
	}
	return nil
}

// release gives n places back.
func (h *Host) release(n int) { h.places.Add(int64(-n)) }

// enter notes a text that is computed or waits, and leave that it is no longer.
func (h *Host) enter(s *Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = append(h.running, s)
}

func (h *Host) leave(s *Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = slices.DeleteFunc(h.running, func(o *Slot) bool { return o == s })
}

func (h *Host) count(s *Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Generated++
}

// Slots returns the texts that are computed, by age, one for each place in steps.
func (h *Host) Slots() []Slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Slot, h.Info.Parallel)
	for i := range min(len(all), len(h.running)) {
		all[i] = *h.running[i]
	}
	return all
}

// Compute runs f, which computes something else than an answer, in a place of its own.
func (h *Host) Compute(ctx context.Context, id string, f func(ctx context.Context) error) error {
	if err := h.admit(1); err != nil {
		return err
	}
	defer h.release(1)
	ctx, cancel := h.pool.Within(ctx)
	defer cancel(nil)
	s := &Slot{Request: id}
	h.enter(s)
	defer h.leave(s)
	return causeOf(ctx, f(ctx))
}

// causeOf returns why a context has ended where that is what an error says.
func causeOf(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return context.Cause(ctx)
}

// Piece returns a token as text, and as bytes, which may be less than whole characters.
func (h *Host) Piece(id token.ID) (text string, raw []byte) {
	raw, err := h.Model.Piece(id)
	if err != nil {
		return "", nil // the model gave it: it is of the vocabulary
	}
	return strings.ToValidUTF8(string(raw), "\ufffd"), raw
}

// Guard is deferred: it turns a panic of the caller into [wire.ErrInternal], which fails one request. The panic is counted and
// logged with its stack. [http.ErrAbortHandler], which asks for the connection to be cut, is let through.
func (p *Pool) Guard(err *error) {
	fault := recover()
	switch fault {
	case nil:
		return
	case http.ErrAbortHandler:
		panic(fault)
	}
	p.metrics.fault()
	p.config.Log.Error("internal error", "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	*err = wire.ErrInternal
}
