// Package serving opens and closes the models of a server, computes the answers to its requests, and counts both in its metrics.
package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"grove"
	"grove/internal/machine"
	"grove/internal/options"
	"grove/server/access"
	"grove/server/wire"
)

// Entry is a model to serve.
type Entry struct {
	Name     string
	Path     string // of the model's file, for requests that ask about it; "": unknown
	Settings string // what its answers depend on besides the model's file, for batches that go on later; "": nothing
	// Open opens the model in memory bytes for weights and cache; 0: as many as the machine has.
	Open func(ctx context.Context, memory uint64) (*grove.Model, error)
}

// Settings returns the text for [Entry.Settings] of a cache type, and of names and values in turns; values that are empty are left out.
func Settings(cacheType string, named ...string) string {
	text := ", cache " + cacheType
	for pair := range slices.Chunk(named, 2) {
		if pair[1] != "" {
			text += ", " + pair[0] + " " + pair[1]
		}
	}
	return text
}

// Catalog is the models of this machine that a server may open besides those that were added. It is safe for concurrent use.
type Catalog interface {
	// Entries lists the models.
	Entries() []Entry
	// Entry returns the model of a name, in any spelling; the source has its name in the list.
	Entry(name string) (Entry, bool)
}

// Config says how models are served. The zero value is the usual case.
type Config struct {
	OnDemand  bool            // a model is opened when a request first asks for it
	AnyModel  bool            // the first model answers requests for models that are not served
	Idle      time.Duration   // an unused model is closed after this time, and opened again by the next request for it; 0: never
	Memory    uint64          // bytes of all models and requests together; 0: as many as the machine has
	Wait      time.Duration   // for memory that other models use, until a model that is asked for gets 503; 0: 30 s
	Sessions  access.Sessions // what requests may keep
	KeepAlive time.Duration   // a stream without an event for this time gets a comment; 0: 10 s
	Log       *slog.Logger    // nil: nothing is logged
	Catalog   Catalog         // nil: only models that were added are served
}

// Pool holds the models. It is safe for concurrent use.
type Pool struct {
	config  Config
	memory  uint64 // bytes of models and requests together: the bound, or what the machine has
	metrics *Metrics
	work    *Work
	ending  context.Context
	end     context.CancelFunc
	turn    chan struct{} // has a value while a model is opened: one at a time, in the memory that the others leave
	freed   chan struct{} // has a value where a model may have become unused or closed

	mu      sync.Mutex
	waits   *waiting   // the model that waits for memory; nil: none does
	entries []*entry   // those that were added, and behind them those of the catalog that requests named
	closed  grove.Load // the steps, rows, preemptions and prefixes of the models that were closed
}

// entry is a model, open or not. The pool's lock guards it.
type entry struct {
	Entry
	listed  bool       // in the catalog: it was not added
	model   *OpenModel // nil: it is not open
	loading *opening   // nil: it is not being opened
	users   int
	last    time.Time     // of its last use
	keep    time.Duration // an unused model stays open that long; negative: for ever; 0: the pool's idle time
	closing *time.Timer   // closes the model after that; nil: it was never unused
	bytes   uint64        // of weights and cache; 0: it is not open
	gone    bool          // it was forgotten, and is not opened again
}

// mostNames is the number of models that an error names.
const mostNames = 10

// ErrModel reports a model that cannot be added to a server.
var ErrModel = errors.New("server: a model cannot be served")

// NewPool makes a pool without models.
func NewPool(c Config) *Pool {
	c.KeepAlive, c.Wait = cmp.Or(c.KeepAlive, 10*time.Second), cmp.Or(c.Wait, memoryTime)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{config: c, memory: cmp.Or(c.Memory, machine.Memory(), 4<<30), turn: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
	p.ending, p.end = context.WithCancel(context.Background())
	p.metrics, p.work = newMetrics(p), newWork(p.requestMemory)
	return p
}

// Work returns the work on requests before their texts are computed.
func (p *Pool) Work() *Work { return p.work }

// Metrics returns the metrics of the pool.
func (p *Pool) Metrics() *Metrics { return p.metrics }

// Add adds a model. The first one answers requests that name none. It is called before the first request.
func (p *Pool) Add(s Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Name == "" || slices.ContainsFunc(p.entries, func(e *entry) bool { return e.Name == s.Name }) {
		return fmt.Errorf("%w: the name %q is empty or taken", ErrModel, s.Name)
	}
	p.entries = append(p.entries, &entry{Entry: s})
	return nil
}

// Load opens all models, unless they are opened on demand.
func (p *Pool) Load(ctx context.Context) error {
	if p.config.OnDemand {
		return nil
	}
	for _, e := range p.all() {
		_, leave, err := p.use(ctx, e)
		if err != nil {
			return err
		}
		leave()
	}
	return nil
}

// all returns the entries as they are now.
func (p *Pool) all() []*entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.entries)
}

// Use opens the model of a name, "" for the first. The model stays open until leave is called. Errors: a [*wire.Error], ctx's.
func (p *Pool) Use(ctx context.Context, name string) (h *OpenModel, leave func(), err error) {
	e, err := p.find(name)
	if err != nil && p.config.AnyModel {
		if first, _ := p.known(""); first != nil {
			e, err = first, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if h, leave, err = p.use(ctx, e); err == nil || ctx.Err() != nil {
		return h, leave, err
	}
	if api := new(wire.Error); errors.As(err, &api) && api != wire.ErrInternal {
		return nil, nil, err
	}
	p.config.Log.ErrorContext(ctx, "a model cannot be opened", "model", e.Name, "error", err)
	return nil, nil, &wire.Error{
		Status: 503, Retry: 5, Message: fmt.Sprintf("the model %q could not be opened; the server's log says why", e.Name),
		Type: wire.TypeUnavailable, Code: "model_failed",
	}
}

// latest is the tag that ollama's clients add to names without one.
const latest = ":latest"

// find returns the model of a name, "" for the first.
func (p *Pool) find(name string) (*entry, error) {
	e, names := p.known(name)
	if e == nil && p.config.Catalog != nil {
		if s, ok := p.config.Catalog.Entry(name); ok {
			return p.adopt(s), nil
		}
	}
	if e != nil {
		return e, nil
	}
	served := "no model is"
	switch n := len(names); {
	case n == 1:
		served = "served is " + names[0]
	case n > mostNames:
		served = fmt.Sprintf("served are %s and %d more", strings.Join(names[:mostNames], ", "), n-mostNames)
	case n > 1:
		served = "served are " + strings.Join(names, ", ")
	}
	hint := options.NearHint(name, names)
	if elsewhere.MatchString(name) {
		hint = "; grove serve --any-model answers every name with the first model"
	}
	return nil, &wire.Error{
		Status: 404, Type: wire.TypeInvalid, Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("the model %q is not served; %s%s", wire.Clip(name), served, hint),
	}
}

// elsewhere is the names of models that programs ask for because they were written for another server.
var elsewhere = regexp.MustCompile(`^(claude|gpt|chatgpt|o[1-9]|codex|gemini|text-embedding)-|^default_model$`)

// known returns the model of a name, "" for the first, nil if there is none, and the names of all.
func (p *Pool) known(name string) (*entry, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.named(name)
}

// named is known for a caller that holds the lock.
func (p *Pool) named(name string) (*entry, []string) {
	var names []string
	for _, e := range p.entries {
		if name == "" || e.Name == name || e.Name+latest == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return nil, names
}

// adopt returns the entry of a model of the catalog.
func (p *Pool) adopt(s Entry) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, _ := p.named(s.Name); e != nil {
		return e
	}
	e := &entry{Entry: s, listed: true}
	p.entries = append(p.entries, e)
	return e
}

// Forget closes a model of the catalog, and reports whether that was possible: it is in use, or was added.
func (p *Pool) Forget(name string) bool {
	e, _ := p.known(name)
	if e == nil {
		return true
	}
	if !e.listed || p.unload(e, time.Now()) != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.model != nil || e.users > 0 || e.loading != nil {
		return false
	}
	e.gone = true // for a request that has found it already
	p.entries = slices.DeleteFunc(p.entries, func(o *entry) bool { return o == e })
	return true
}

func (p *Pool) leave(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	p.rest(e)
	p.free()
}

// Unload closes the model of a name. One that is not open stays as it is. A model that is being opened or that requests use is refused
// with 409.
func (p *Pool) Unload(name string) error {
	e, err := p.find(name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	users, loading := e.users, e.loading != nil
	p.mu.Unlock()
	if users == 0 && !loading {
		if err := p.unload(e, time.Now()); err != nil {
			return err
		}
		p.mu.Lock()
		users, loading = e.users, e.loading != nil // a request may have come first
		p.mu.Unlock()
	}
	switch {
	case loading:
		return busy(e.Name, "is being opened")
	case users > 0:
		return busy(e.Name, "has requests under way")
	}
	return nil
}

func busy(model, why string) error {
	return &wire.Error{
		Status: http.StatusConflict, Retry: 1, Message: fmt.Sprintf("the model %q %s; try again when that has ended", model, why),
		Type: wire.TypeInvalid, Param: "model", Code: "model_busy",
	}
}

// unload closes a model unless it is in use or was used after the time since.
func (p *Pool) unload(e *entry, since time.Time) error {
	p.mu.Lock()
	h := e.model
	if h == nil || e.users > 0 || e.last.After(since) {
		p.mu.Unlock()
		return nil
	}
	e.model, e.keep = nil, 0
	l := h.Model.Load()
	p.closed.Steps, p.closed.Rows, p.closed.Preempted = p.closed.Steps+l.Steps, p.closed.Rows+l.Rows, p.closed.Preempted+l.Preempted
	l.Prefixes.Open, l.Prefixes.Queued = 0, 0
	p.closed.Prefixes.Add(l.Prefixes)
	p.mu.Unlock()
	err := h.Model.Close()
	if err != nil {
		p.config.Log.Error("a model was not closed cleanly", "model", e.Name, "error", err)
	} else {
		p.config.Log.Info("model closed", "model", e.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.bytes -= uint64(h.Memory())
	p.free()
	return err
}

// Ending reports whether Stop was called.
func (p *Pool) Ending() bool { return p.ending.Err() != nil }

// Stop cancels all running requests: their clients get an error that says so. New requests are refused.
func (p *Pool) Stop() { p.end() }

// Close stops the pool and closes each model when its last request has ended.
func (p *Pool) Close() (err error) {
	p.Stop()
	p.turn <- struct{}{} // waits for a model that is being opened
	defer func() { <-p.turn }()
	for _, e := range p.all() {
		for {
			p.mu.Lock()
			users := e.users
			p.mu.Unlock()
			if users == 0 {
				break
			}
			time.Sleep(time.Millisecond) // their contexts have ended
		}
		err = errors.Join(err, p.unload(e, time.Now()))
	}
	return err
}

// Within returns a context that ends with a client's, or when the pool stops.
func (p *Pool) Within(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ending, func() { cancel(wire.ErrStopping) })
	return ctx, func(cause error) {
		stop()
		cancel(cause)
	}
}
