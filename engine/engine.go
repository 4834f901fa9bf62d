// Package engine runs sequences: it fills the cache with a prompt, and then goes round the loop of
// forward pass, draw and commit. Each step is one forward pass over a forest; plain decoding is a
// forest of single rows.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"grove/compute"
	"grove/forest"
	"grove/internal/mmap"
	"grove/internal/par"
	"grove/kv"
	"grove/method"
	"grove/model"
	"grove/sample"
	"grove/tensor"
	"grove/token"
)

// ErrContext reports a sequence that has reached the end of its context.
var ErrContext = errors.New("the context is full")

// ErrBusy reports that as many sequences are open as the engine was made for.
var ErrBusy = errors.New("too many sequences are open")

// ErrEncoder reports that a text was asked of a model that gives none.
var ErrEncoder = errors.New("is an encoder and generates no text")

// Config says what an engine has room for.
type Config struct {
	Context   int         // tokens of a sequence; 0: the model's, 4096 at most
	CacheType tensor.Type // F32, F16 or Q8_0
	Seqs      int         // sequences open at a time; 0: 1
	Chunk     int         // rows of a prefill step; 0: 512; an encoder's is Context
	Memory    uint64      // bytes that the cache may come to use; 0: any
}

const (
	defaultContext = 4096
	defaultChunk   = 512

	// maxLive is how many rows a sequence may leave behind when its turn is over: those of a round, or of a branch.
	maxLive = max(1+maxDraft, method.MaxLive)
)

// Engine owns a model's cache and executor. It is safe for concurrent use: sequences take turns, a step
// at a time.
type Engine struct {
	model   model.Model
	vocab   int
	chunk   int
	threads int

	mu    sync.Mutex // guards the fields below, and what they hold
	cache *kv.Cache
	exec  *compute.Exec
	cost  *Cost // nil until it is measured
	open  int
	seqs  int
}

// New makes an engine for an open model. Prompt and draft rows run on the pool's threads.
func New(m model.Model, pool *par.Pool, c Config) (*Engine, error) {
	info := m.Info()
	if c.Context == 0 {
		c.Context = min(info.Context, defaultContext)
	}
	if c.Chunk == 0 {
		c.Chunk = defaultChunk
	}
	if c.Seqs == 0 {
		c.Seqs = 1
	}
	if c.Context < 1 || c.Context > info.Context {
		return nil, fmt.Errorf("engine: a context of %d tokens; the model was trained for %d", c.Context, info.Context)
	}
	if info.Encoder {
		c.Chunk = c.Context // a text is one step: its rows see each other
	}
	c.Chunk = min(c.Chunk, c.Context)
	cache, err := kv.New(kv.Config{
		Layers: info.Layers, Type: c.CacheType, Context: c.Context, Tokens: c.Context * c.Seqs,
		Seqs: c.Seqs, Scratch: c.Chunk + c.Seqs*maxLive, Identity: info.Identity, Limit: c.Memory,
	})
	if err != nil {
		return nil, err
	}
	e := &Engine{
		model: m, vocab: info.Vocabulary, chunk: c.Chunk, threads: pool.Threads(), seqs: c.Seqs,
		cache: cache, exec: compute.NewExec(cache, pool, info.Width, c.Chunk),
	}
	e.loadCost()
	return e, nil
}

// Context returns the number of tokens that a sequence may have.
func (e *Engine) Context() int { return e.cache.Config().Context }

// CacheBytes returns the memory that the cache can come to use.
func (e *Engine) CacheBytes() int { return e.cache.Bytes() }

// CacheUse returns the share of the cache that sequences hold, from 0 to 1. It waits for the step that runs.
func (e *Engine) CacheUse() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cache.Use()
}

// Generates returns [ErrEncoder], with the architecture's name, where the model has no logits to draw from.
func (e *Engine) Generates() error {
	if info := e.model.Info(); info.Encoder {
		return fmt.Errorf("engine: %s %w: it gives embeddings", info.Arch, ErrEncoder)
	}
	return nil
}

// Sequence is one text on its way: a trunk of committed tokens and the logits behind its end. It is
// for one goroutine; several sequences of an engine may be used at a time.
type Sequence struct {
	e       *Engine
	seq     forest.Seq
	answer  Answer
	sampler *sample.Sampler
	shaper  *sample.Shaper // nil: draws do not look back
	text    []token.ID     // for the shaper
	prompt  int            // how many of the text were appended
	pending []token.ID     // tokens that are part of the text and not yet computed
	length  int            // tokens of the text
	reused  int
	logits  []float32 // behind the last computed token

	spec       *speculation // nil: one token a step
	prediction []token.ID
	queue      []Drawn // by the last round, of which some are taken: part of the text
	taken      int
	root       forest.Node   // of the last round
	path       []forest.Node // the root and the guesses that came true, live until they are settled
}

// NewSequence opens a sequence that draws its tokens as the answer says. Errors: [ErrEncoder], [ErrBusy], those
// of the answer's settings.
func (e *Engine) NewSequence(a Answer) (*Sequence, error) {
	if err := e.Generates(); err != nil {
		return nil, err
	}
	s, err := sample.New(a.Sampling, e.vocab)
	if err != nil {
		return nil, err
	}
	h, err := sample.NewShaper(a.Shape, e.vocab)
	if err != nil {
		return nil, err
	}
	seq, err := e.openSeq(a.Salt)
	if err != nil {
		return nil, err
	}
	return &Sequence{e: e, seq: seq, answer: a, sampler: s, shaper: h, logits: make([]float32, e.vocab)}, nil
}

func (e *Engine) openSeq(salt string) (forest.Seq, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == e.seqs {
		return -1, fmt.Errorf("engine: %d sequences: %w", e.open, ErrBusy)
	}
	e.open++
	return e.cache.NewSeq(salt), nil
}

func (e *Engine) closeSeq(seq forest.Seq) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.cache.CloseSeq(seq); err != nil {
		return err
	}
	e.open--
	return nil
}

// Close gives the sequence's room back. The sequence is of no use afterwards; a second call is an error.
func (s *Sequence) Close() (err error) {
	if s.spec != nil {
		err = s.spec.close()
		s.spec = nil
	}
	if err := errors.Join(err, s.e.closeSeq(s.seq)); err != nil {
		return err
	}
	s.seq = -1 // the cache may give the number to another sequence
	return nil
}

// Len returns the number of tokens of the text.
func (s *Sequence) Len() int { return s.length }

// Reused returns how many of the first prompt's tokens were found in the cache.
func (s *Sequence) Reused() int { return s.reused }

// Append adds tokens to the text and computes them. Errors: [ErrContext] with both numbers, and then the
// text is as before; ctx's error or the model's, and then a later Append or Next goes on with the tokens
// that are not computed yet.
func (s *Sequence) Append(ctx context.Context, ids []token.ID) error {
	if s.length+len(ids) > s.e.Context() {
		return fmt.Errorf("engine: %d tokens do not fit: %w of %d tokens", s.length+len(ids), ErrContext, s.e.Context())
	}
	if err := s.settle(); err != nil {
		return err
	}
	if s.spec != nil {
		s.spec.fresh = append(s.spec.fresh, ids...)
	}
	s.remember(ids...)
	s.prompt = s.length + len(ids)
	if s.length == 0 {
		if err := s.reuse(ids); err != nil {
			return err
		}
		ids = ids[s.reused:]
	}
	s.pending = append(s.pending, ids...)
	s.length += len(ids)
	return s.flush(ctx)
}

// reuse takes over what the cache holds of a text's beginning.
func (s *Sequence) reuse(ids []token.ID) error {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	n, err := s.e.cache.Reuse(s.seq, ids)
	s.reused, s.length = n, n
	return err
}

// flush computes the pending tokens, a chunk at a time.
func (s *Sequence) flush(ctx context.Context) error {
	for len(s.pending) > 0 {
		n := min(len(s.pending), s.e.chunk)
		if err := s.step(ctx, s.pending[:n], n == len(s.pending)); err != nil {
			return err
		}
		s.pending = s.pending[:copy(s.pending, s.pending[n:])]
	}
	return nil
}

// step computes and commits a path of tokens, and keeps the logits behind it if they are wanted.
func (s *Sequence) step(ctx context.Context, ids []token.ID, logits bool) error {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	wanted := 0
	if logits {
		wanted = 1
	}
	end, err := s.e.path(ctx, s.seq, ids, forest.Row{Want: forest.Want{Logits: true}}, wanted)
	if err != nil {
		return err
	}
	if logits {
		copy(s.logits, s.e.exec.Result(len(ids)-1).Logits)
	}
	return s.e.cache.Commit(s.seq, end)
}

// path computes tokens behind the trunk of a sequence and returns the node of the last. The rows are as row
// says, but only the last few want what it wants. The caller holds the lock. On error nothing of it is left.
func (e *Engine) path(ctx context.Context, seq forest.Seq, ids []token.ID, row forest.Row, wanted int) (forest.Node, error) {
	x := e.exec
	end, want := forest.Trunk, row.Want
	for i, id := range ids {
		row.Seq, row.Parent, row.ID, row.Want = seq, end, id, forest.Want{}
		if i >= len(ids)-wanted {
			row.Want = want
		}
		node, err := x.Step.Add(row)
		if err != nil {
			x.Step.Abort()
			return end, err
		}
		end = node
	}
	shape := Shape{Rows: len(ids), Depth: e.cache.Forest.Len(seq)}
	if want.Head() {
		shape.Logits = wanted
	}
	start := time.Now()
	if err := e.run(ctx); err != nil {
		return end, err
	}
	x.Step.Reset()
	if e.cost != nil {
		shape.Experts = x.Touched()
		e.cost.Observe(shape, time.Since(start).Seconds())
	}
	return end, nil
}

// run passes the step's rows through the model. On error, a file that shrank while it was read among them,
// nothing of the step is left.
func (e *Engine) run(ctx context.Context) error {
	err := mmap.Catch(func() error { return e.exec.Run(ctx, e.model.Forward) })
	if check := e.model.Info().Check; err == nil && check != nil {
		err = check()
	}
	if err != nil {
		e.exec.Step.Abort()
	}
	return err
}

// Next draws the token behind the text, appends it, and returns it. The token is computed by the call
// that needs what follows it, so the last one costs nothing. Errors: [ErrContext] where the text fills
// the context, ctx's error, the model's.
func (s *Sequence) Next(ctx context.Context) (Drawn, error) {
	if s.length == 0 {
		return Drawn{}, errors.New("engine: drawing a token of an empty text")
	}
	if s.length == s.e.Context() {
		return Drawn{}, fmt.Errorf("engine: %d tokens: %w", s.length, ErrContext)
	}
	if s.taken < len(s.queue) {
		return s.take(), nil
	}
	if err := s.settle(); err != nil {
		return Drawn{}, err
	}
	if s.spec != nil && len(s.pending) == 1 {
		if err := s.round(ctx); err != nil {
			return Drawn{}, err
		}
		return s.take(), nil
	}
	if err := s.flush(ctx); err != nil {
		return Drawn{}, err
	}
	d, err := s.draw(s.logits, s.text, s.length)
	if err != nil {
		return d, err
	}
	s.pending = append(s.pending, d.ID)
	s.length++
	s.remember(d.ID)
	if s.spec != nil {
		s.spec.drew(d.ID)
	}
	return d, nil
}
