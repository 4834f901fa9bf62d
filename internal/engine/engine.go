// Package engine runs sequences: it fills the cache with a prompt, and then goes round the loop of forward pass, draw
// and commit. Each step is one forward pass over a forest; plain decoding is a forest of single rows.
//
// All work that runs rows is a job: a prompt (prefill.go), a round of drafts (round.go), rows for a drafter
// (grow.go), rows that are tried (tried.go), a text's states or logits (package texts), a canvas (package diffuse/fill), a probe (package timing). Callers queue (package
// queue); one of them leads and makes a step of what all want (package step).
package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"grove/internal/compute"
	"grove/internal/engine/adapters"
	"grove/internal/engine/pages"
	"grove/internal/engine/plan"
	"grove/internal/engine/speculate"
	"grove/internal/engine/step"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// ErrContext reports a sequence that has reached the end of its context.
var ErrContext = errors.New("the context is full")

// ErrBusy reports that no slot is free: as many sequences are open as the engine was made for, and as may wait.
var ErrBusy = step.ErrBusy

// Terms are a sequence's settings for the scheduler: priority, salt, adapters.
type Terms = step.Terms

// Load counts an engine's sequences, pages and steps at a moment, for monitoring.
type Load = step.Load

// Prefixes says where the pages of texts are kept that engines share; the zero value keeps none.
type Prefixes = pages.Config

// The range of [Terms.Priority].
const (
	MinPriority = step.MinPriority
	MaxPriority = step.MaxPriority
)

// ErrClosed reports a sequence or an engine that was closed.
var ErrClosed = errors.New("is closed")

var errClosed = fmt.Errorf("engine: the sequence %w", ErrClosed)

// ErrPanic reports a stage, a method or a rule that panicked: the request that it worked for fails, and no other.
var ErrPanic = step.ErrPanic

// ErrEncoder reports that a text was asked of a model that gives none.
var ErrEncoder = errors.New("generates no text")

// Config sets the bounds of an engine: sequences, tokens, rows, bytes.
type Config struct {
	Context     int                      // tokens of a sequence; 0: the model's, 4096 at most
	CacheType   tensor.Type              // F32, F16 or Q8_0
	Seqs        int                      // sequences that have rows in steps at a time; 0: 1
	Queue       int                      // sequences that may be open besides and wait for a slot
	Tokens      int                      // tokens of all sequences that the cache holds, a Context's at least; 0: Seqs times Context
	Chunk       int                      // rows of a step; 0: 512; an encoder's is Context
	Memory      uint64                   // bytes that the cache may come to use; 0: any
	Drafts      int                      // of a round, or rows that a drafter has grown, that live at a time; 0: as many as ever
	Drafting    int                      // sequences that draft at a time; 0: Seqs
	Substitutes compute.SubstituteLayers // what stands for the layers that texts may drop ([layers.Places]); nil: none
	DraftBytes  int                      // bytes that the rounds of a text may take; 0: any
	Prefixes    Prefixes                 // a folder of pages that engines share
}

const (
	// DefaultContext is the most tokens of a sequence where a configuration says nothing.
	DefaultContext = 4096

	defaultChunk = 512
)

// Engine owns a model's cache and executor. It is safe for concurrent use: steps are made one after another, each
// of the jobs of all callers that wait.
type Engine struct {
	steps   step.Maker
	encoder *Engine // of an encoder-decoder; nil: none
	pool    *par.Pool
	vocab   int
	limits  speculate.MemoryLimits
	texts   atomic.Int32                 // that draft
	shared  *pages.Store                 // nil: none
	own     atomic.Pointer[adapters.Set] // of texts that are no sequences
}

// New makes an engine for an open model. Prompt and draft rows run on the pool's threads.
func New(m model.Model, pool *par.Pool, c Config) (*Engine, error) {
	info := m.Info()
	room, err := c.complete(info)
	if err != nil {
		return nil, err
	}
	cache, err := kv.New(room)
	if err != nil {
		return nil, err
	}
	e := &Engine{pool: pool, vocab: info.Vocabulary, limits: speculate.MemoryLimits{Drafts: c.Drafts, Texts: c.Drafting, Bytes: c.DraftBytes}}
	e.steps.Init(step.Config{
		Model: m, Cache: cache, Exec: compute.NewExec(cache, pool, info.Width, c.rows(info)),
		Experts: plan.Mixture{Layers: info.Mixtures, Experts: info.Experts, ExpertsPerToken: info.ExpertsPerToken},
		Chunk:   c.Chunk, Seqs: c.Seqs, MaxOpen: c.Seqs + c.Queue, Mask: asks(info),
	})
	e.steps.Exec.SetSubstitutes(c.Substitutes)
	if err := e.openEncoder(c); err != nil {
		return nil, err
	}
	if path, err := e.CostPath(); err == nil {
		e.steps.Costs.Load(path)
	}
	e.shared = pages.Open(&e.steps, c.Prefixes)
	return e, nil
}

// complete checks what is asked for, fills in what is not, and returns the cache that it takes.
func (c *Config) complete(info *model.Info) (kv.Config, error) {
	if c.Context == 0 {
		c.Context = min(info.Context, DefaultContext)
	}
	if c.Chunk == 0 {
		c.Chunk = defaultChunk
		if info.Full {
			c.Chunk = max(c.Chunk, c.Context) // texts that are embedded, and prompts of an answer, are one step
		}
	}
	c.Seqs = cmp.Or(c.Seqs, 1)
	if c.Context < 1 || c.Context > info.Context {
		return kv.Config{}, fmt.Errorf("engine: a context of %d tokens; the model was trained for %d (%s)", c.Context, info.Context, cmp.Or(info.Name, "a model of architecture "+info.Arch))
	}
	c.Tokens = cmp.Or(c.Tokens, c.Context*c.Seqs)
	if c.Queue < 0 || c.Tokens < c.Context {
		return kv.Config{}, fmt.Errorf("engine: a queue of %d sequences and a cache of %d tokens for a context of %d", c.Queue, c.Tokens, c.Context)
	}
	c.Drafts, c.Drafting = min(cmp.Or(c.Drafts, plan.MaxDraft), plan.MaxDraft), min(cmp.Or(c.Drafting, c.Seqs), c.Seqs)
	live := 0 // nodes that a round leaves until the next: its root, and drafts
	switch d := info.Diffusion; {
	case info.Whole():
		c.Chunk = c.Context // a text is one step: its rows see each other
	case d != nil && d.Renoise != nil:
		c.Chunk = max(c.Chunk, d.Renoise.Canvas)
	default:
		live = c.Seqs + c.Drafting*c.Drafts
	}
	if d := info.Diffusion; d != nil && d.Block > 0 {
		c.Chunk = max(c.Chunk, 2*d.Block+1) // a finished block and the next one, and the row before where it gives a token
	}
	c.Chunk = max(min(c.Chunk, c.Context), c.Seqs)
	room := kv.Config{
		Layers: c.layers(info), Type: c.CacheType, Context: c.Context, Tokens: c.Tokens,
		Seqs: c.Seqs, Scratch: c.rows(info) + live, Records: 2*live + c.Seqs, Identity: info.Identity, Limit: c.Memory,
	}
	if asks(info) != nil {
		room.Context++ // the mask behind the last token
		room.Tokens = max(room.Tokens, room.Context)
	}
	return room, nil
}

// asks returns the mask of a model of blocks whose rows give the token of their own place: a row behind which the next token is wanted has a mask behind it. nil: rows give that.
func asks(info *model.Info) *token.ID {
	if d := info.Diffusion; d != nil && d.Block > 0 && !d.Shift && d.Mask != token.None {
		return &d.Mask
	}
	return nil
}

// rows returns the most rows of a step, those of masks that ask included.
func (c *Config) rows(info *model.Info) int {
	if asks(info) != nil {
		return 2 * c.Chunk
	}
	return c.Chunk
}

// layers returns what the layers of a model keep.
func (c *Config) layers(info *model.Info) []kv.Layer {
	all := slices.Clone(info.Layers)
	for i := range all {
		all[i].Gaps = c.Substitutes.Set().Has(i)
	}
	return all
}

// Close ends all calls with [ErrClosed], within a layer's time, and returns when no step runs and none will: then the
// model and the pool may be closed. It first writes the texts that wait for the folder of prefixes, for five seconds at most. Later calls of the engine and of its sequences give ErrClosed, but for
// [Sequence.Close]; a second Close does nothing. It must not be called by a stage, a method or a rule.
func (e *Engine) Close() {
	e.steps.Close(fmt.Errorf("engine: the model %w", ErrClosed))
	if e.encoder != nil {
		e.encoder.Close()
	}
	e.shared.Close()
}

// Steps returns what makes the engine's steps, for jobs of other packages.
func (e *Engine) Steps() *step.Maker { return &e.steps }

// Closed returns an [ErrClosed] once Close was called.
func (e *Engine) Closed() error { return e.steps.Closed() }

// Context returns the number of tokens that a sequence may have.
func (e *Engine) Context() int {
	n := e.steps.Cache.Config().Context
	if e.steps.Mask != nil {
		n-- // for a mask that asks
	}
	return n
}

// Slots returns how many sequences may have rows in steps at a time, and how many may wait besides.
func (e *Engine) Slots() (seqs, queue int) { return e.steps.Seqs, e.steps.MaxOpen - e.steps.Seqs }

// Load returns what the engine does. It does not wait for a step.
func (e *Engine) Load() Load {
	waiting := e.steps.Waiting()
	now := e.steps.Load.Now()
	now.Waiting = waiting
	return now
}

// CacheBytes returns the memory that the cache can come to use.
func (e *Engine) CacheBytes() int {
	n := e.steps.Cache.Bytes()
	if e.encoder != nil {
		n += e.encoder.CacheBytes()
	}
	return n
}

// checkNext returns an error where the model has no distribution of the next token alone.
func (e *Engine) checkNext() error {
	info := e.steps.Model.Info()
	switch d := info.Diffusion; {
	case d == nil || d.Block > 0 && (d.Shift || d.Mask != token.None):
		return nil // rows that see those before them alone: blocks of one token
	case d.Block > 0:
		return fmt.Errorf("engine: %s gives a token at its mask, and the file names no mask (tokenizer.ggml.mask_token_id)", info.Arch)
	}
	return fmt.Errorf("engine: %s fills a canvas by diffusion: it has no logits of the next token alone", info.Arch)
}

// CheckDraft returns an error where the model gives a drafter neither the logits of the next token nor those of masks.
func (e *Engine) CheckDraft() error {
	if d := e.steps.Model.Info().Diffusion; d == nil || d.Mask != token.None {
		return nil
	}
	return e.checkNext()
}

// CheckGenerates returns [ErrEncoder], with the architecture's name, where the model has no logits to draw from.
func (e *Engine) CheckGenerates() error {
	switch info := e.steps.Model.Info(); {
	case info.Encoder:
		return fmt.Errorf("engine: %s is an encoder and %w: it gives embeddings", info.Arch, ErrEncoder)
	case info.Embeds():
		return fmt.Errorf("engine: the file asks for a pooling of %q of %s, and so %w: it gives embeddings, or ranks texts", info.Pooling, info.Arch, ErrEncoder)
	}
	return nil
}

// Accelerate gives a set of adapters a number for as long as the engine is open, by which rows of drafters have it ([forest.Row]). Rows of a text with adapters of its own have
// those in its place.
func (e *Engine) Accelerate(a *adapters.Set) int { return e.steps.Accelerate(a) }
