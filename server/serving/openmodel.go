package serving

import (
	"context"
	"crypto/sha256"
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
	"grove/internal/text/chat"
	"grove/internal/text/token"
	"grove/server/access"
	"grove/server/wire"
)

// OpenModel is an open model, and the answers that it computes. It is safe for concurrent use.
type OpenModel struct {
	Name    string
	Model   *grove.Model
	Info    grove.Info
	Created time.Time
	Gives   *Defaults // what the name by which it was asked for gives requests; nil: nothing

	settings string // of its [Entry]

	pool *Pool
	*texts
}

// texts are those of a model that are computed or wait, under whatever name.
type texts struct {
	places atomic.Int64 // reserved, by answers that are computed or queued

	mu      sync.Mutex
	running []*Slot // the oldest first
}

// Slot describes a text that is computed.
type Slot struct {
	Request   string // the id of the request; "": the slot is free
	Owner     string // the folder of the key that asked; "": the server has no keys
	Prompt    int    // tokens
	Generated int
}

func newOpenModel(p *Pool, e Entry, m *grove.Model) *OpenModel {
	return &OpenModel{Name: e.Name, Model: m, Info: m.Info(), Created: time.Now(), settings: e.Settings, pool: p, texts: new(texts)}
}

// as returns the model under a name that a client gave it; nil: under its own.
func (h *OpenModel) as(a *Alias) *OpenModel {
	if a == nil || h == nil {
		return h
	}
	named := *h
	named.Name, named.Gives = a.Name, a.Defaults
	named.settings += fmt.Sprintf(", of %s by %x", h.Name, sha256.Sum256(a.Record))
	return &named
}

// Identity names what the model's answers depend on, besides requests and numerics.
func (h *OpenModel) Identity() string {
	return fmt.Sprintf("%s %.8x, context %d", h.Name, h.Info.SampleDigest, h.Info.Context) + h.settings
}

// Template returns the template of conversations, nil where the model cannot answer any.
func (h *OpenModel) Template() *chat.Template {
	t, err := h.Model.Templates().For(chat.Options{})
	if err != nil {
		return nil
	}
	return t
}

// admit reserves n places, or refuses: there are as many as answers may be computed and queued.
func (h *OpenModel) admit(n int) error {
	if h.pool.Ending() {
		return wire.ErrStopping
	}
	if h.places.Add(int64(n)) > h.most() {
		h.release(n)
		return wire.ErrBusy
	}
	return nil
}

// most is the number of places.
func (h *OpenModel) most() int64 { return int64(h.Info.Parallel + h.Info.Queue) }

// release gives n places back.
func (h *OpenModel) release(n int) { h.places.Add(int64(-n)) }

// enter adds a text to the list of slots, and leave removes it.
func (h *OpenModel) enter(s *Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = append(h.running, s)
}

func (h *OpenModel) leave(s *Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = slices.DeleteFunc(h.running, func(o *Slot) bool { return o == s })
}

func (h *OpenModel) count(s *Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Generated++
}

// Slots returns the slots of the model: the texts that are computed, the oldest first, then free slots.
func (h *OpenModel) Slots() []Slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Slot, h.Info.Parallel)
	for i := range min(len(all), len(h.running)) {
		all[i] = *h.running[i]
	}
	return all
}

// Requests returns the number of texts that are computed and of those that are queued.
func (h *OpenModel) Requests() (running, queued int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	running = min(len(h.running), h.Info.Parallel)
	return running, len(h.running) - running
}

// Memory returns the bytes that the weights and the cache may take.
func (h *OpenModel) Memory() int { return h.Info.WeightBytes + h.Info.CacheBytes + h.Info.GuideBytes }

// Compute runs f, which computes embeddings or log-probabilities, as one answer among the others.
func (h *OpenModel) Compute(ctx context.Context, id string, f func(ctx context.Context) error) error {
	if err := h.admit(1); err != nil {
		return err
	}
	defer h.release(1)
	ctx, cancel := h.pool.Within(ctx)
	defer cancel(nil)
	s := &Slot{Request: id, Owner: access.CallerOf(ctx).Folder()}
	h.enter(s)
	defer h.leave(s)
	return CauseOf(ctx, f(ctx))
}

// CauseOf returns the cause of a context's end where err says no more than that it has ended.
func CauseOf(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return context.Cause(ctx)
}

// Piece returns the text of a token, and its bytes, which need not be whole characters.
func (h *OpenModel) Piece(id token.ID) (text string, raw []byte) {
	raw, err := h.Model.Piece(id)
	if err != nil {
		return "", nil // not reached: the model drew the token from its vocabulary
	}
	return strings.ToValidUTF8(string(raw), "\ufffd"), raw
}

// Guard is deferred: it turns a panic of the caller into [wire.ErrInternal], which fails one request, that of ctx. The panic is
// counted and logged with its stack. [http.ErrAbortHandler], which asks for the connection to be cut, is let through.
func (p *Pool) Guard(ctx context.Context, err *error) {
	fault := recover()
	switch fault {
	case nil:
		return
	case http.ErrAbortHandler:
		panic(fault)
	}
	p.metrics.fault()
	p.config.Log.ErrorContext(ctx, "internal error", "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	*err = wire.ErrInternal
}
