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
	"grove/engine/plan"
	"grove/forest"
	"grove/internal/mmap"
	"grove/internal/par"
	"grove/kv"
	"grove/method"
	"grove/model"
	"grove/text/token"
	"grove/weights/tensor"
)

// ErrContext reports a sequence that has reached the end of its context.
var ErrContext = errors.New("the context is full")

// ErrBusy reports that as many sequences are open as the engine was made for, and as may wait.
var ErrBusy = errors.New("too many sequences are open")

// ErrClosed reports a sequence that is of no use any longer.
var ErrClosed = errors.New("the sequence is closed")

// ErrEncoder reports that a text was asked of a model that gives none.
var ErrEncoder = errors.New("is an encoder and generates no text")

// Config says what an engine has room for.
type Config struct {
	Context   int         // tokens of a sequence; 0: the model's, 4096 at most
	CacheType tensor.Type // F32, F16 or Q8_0
	Seqs      int         // sequences that have rows in steps at a time; 0: 1
	Queue     int         // sequences that may be open besides and wait for one of these to close
	Tokens    int         // tokens of all sequences that the cache holds, a Context's at least; 0: Seqs times Context
	Chunk     int         // rows of a step; 0: 512; an encoder's is Context
	Memory    uint64      // bytes that the cache may come to use; 0: any
}

const (
	defaultContext = 4096
	defaultChunk   = 512

	// maxLive is how many rows a sequence may leave behind when its turn is over: those of a round, or of a branch.
	maxLive = max(1+plan.MaxDraft, method.MaxLive)
)

// Engine owns a model's cache and executor. It is safe for concurrent use: steps are made one after another, each
// of what all sequences want that wait for one.
type Engine struct {
	model   model.Model
	moe     plan.Mixture
	vocab   int
	chunk   int
	threads int
	seqs    int
	most    int // sequences that may be open
	line    line
	costs   costs
	freed   chan struct{} // holds one thing where there may be a free seat

	mu     sync.Mutex // held while a step is made; guards the fields below, and what they hold
	cache  *kv.Cache
	exec   *compute.Exec
	seats  int // sequences of the cache that are in use
	seated []*Sequence
	batch  batch
}

// costs is what is known of the cost of steps. Its lock is held for moments.
type costs struct {
	sync.Mutex
	cost *Cost // nil until it is measured
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
	if c.Tokens == 0 {
		c.Tokens = c.Context * c.Seqs
	}
	if c.Queue < 0 || c.Tokens < c.Context {
		return nil, fmt.Errorf("engine: a queue of %d sequences and a cache of %d tokens for a context of %d", c.Queue, c.Tokens, c.Context)
	}
	live := 0 // nodes that a round leaves until the next
	if info.Encoder {
		c.Chunk = c.Context // a text is one step: its rows see each other
	} else {
		live = c.Seqs * maxLive
	}
	c.Chunk = max(min(c.Chunk, c.Context), c.Seqs)
	cache, err := kv.New(kv.Config{
		Layers: info.Layers, Type: c.CacheType, Context: c.Context, Tokens: c.Tokens,
		Seqs: c.Seqs, Scratch: c.Chunk + live, Identity: info.Identity, Limit: c.Memory,
	})
	if err != nil {
		return nil, err
	}
	e := &Engine{
		model: m, moe: plan.Mixture{Layers: len(info.Layers), Experts: info.Experts, Used: info.Used}, vocab: info.Vocabulary,
		chunk: c.Chunk, threads: pool.Threads(), seqs: c.Seqs, most: c.Seqs + c.Queue,
		freed: make(chan struct{}, 1), cache: cache, exec: compute.NewExec(cache, pool, info.Width, c.Chunk),
	}
	e.loadCost()
	return e, nil
}

// Context returns the number of tokens that a sequence may have.
func (e *Engine) Context() int { return e.cache.Config().Context }

// Room returns how many sequences may have rows in steps at a time, and how many may wait besides.
func (e *Engine) Room() (seqs, queue int) { return e.seqs, e.most - e.seqs }

// CacheBytes returns the memory that the cache can come to use.
func (e *Engine) CacheBytes() int { return e.cache.Bytes() }

// Generates returns [ErrEncoder], with the architecture's name, where the model has no logits to draw from.
func (e *Engine) Generates() error {
	if info := e.model.Info(); info.Encoder {
		return fmt.Errorf("engine: %s %w: it gives embeddings", info.Arch, ErrEncoder)
	}
	return nil
}

// openSeq takes a sequence of the cache for work that runs steps of its own. Where all are taken it waits, if wait is set
// and there is room in the queue; otherwise it returns [ErrBusy].
func (e *Engine) openSeq(ctx context.Context, wait bool) (forest.Seq, error) {
	most := e.seqs
	if wait {
		most = e.most
	}
	if err := e.line.open(most); err != nil {
		return -1, err
	}
	for {
		seq, err := e.trySeq()
		if err == nil {
			return seq, nil
		}
		if !wait {
			e.line.close()
			return -1, err
		}
		select {
		case <-e.freed:
		case <-ctx.Done():
			e.line.close()
			return -1, ctx.Err()
		}
	}
}

func (e *Engine) trySeq() (forest.Seq, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seats == e.seqs {
		return -1, fmt.Errorf("engine: %d sequences: %w", e.seats, ErrBusy)
	}
	e.seat(1)
	return e.cache.NewSeq(""), nil
}

// seat counts a seat that is taken or given back, and wakes one who waits for those that are left. The caller holds
// the lock.
func (e *Engine) seat(change int) {
	e.seats += change
	e.line.note(func(l *Load) { l.Admitted, l.Pages = e.seats, e.cache.Usage() })
	if e.seats < e.seqs {
		select {
		case e.freed <- struct{}{}:
		default:
		}
	}
}

func (e *Engine) closeSeq(seq forest.Seq) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.cache.CloseSeq(seq); err != nil {
		return err
	}
	e.seat(-1)
	e.line.close()
	return nil
}

// path computes tokens behind the trunk of a sequence in a step of its own and returns the node of the last. The rows
// are as row says, but only the last few want what it wants. The caller holds the lock. On error nothing of it is left.
func (e *Engine) path(ctx context.Context, seq forest.Seq, ids []token.ID, row forest.Row, wanted int) (forest.Node, error) {
	length := e.cache.Forest.Len(seq)
	if err := e.reserve(seq, nil, length+len(ids), length+len(ids)); err != nil {
		return forest.Trunk, err
	}
	row.Seq = seq
	end, err := e.addPath(ids, row, wanted)
	if err != nil {
		e.exec.Step.Abort()
		return end, err
	}
	shape := plan.StepSize{Rows: len(ids), Depth: length}
	if row.Want.Head() {
		shape.Logits = wanted
	}
	if err := e.run(ctx, shape); err != nil {
		return end, err
	}
	e.exec.Step.Reset()
	return end, nil
}

// addPath adds tokens behind the trunk of row's sequence to the step, of which the last few want what row wants.
func (e *Engine) addPath(ids []token.ID, row forest.Row, wanted int) (end forest.Node, err error) {
	want := row.Want
	for i, id := range ids {
		row.Parent, row.ID, row.Want = end, id, forest.Want{}
		if i >= len(ids)-wanted {
			row.Want = want
		}
		if end, err = e.exec.Step.Add(row); err != nil {
			return end, err
		}
	}
	return end, nil
}

// run passes the step's rows through the model and learns from the time that it took. On error nothing of the step
// is left.
func (e *Engine) run(ctx context.Context, shape plan.StepSize) error {
	start := time.Now()
	if err := e.pass(ctx); err != nil {
		return err
	}
	e.costs.Lock()
	defer e.costs.Unlock()
	if c := e.costs.cost; c != nil {
		shape.Experts = e.exec.Touched()
		c.Observe(shape, time.Since(start).Seconds())
	}
	return nil
}

// pass passes the step's rows through the model. On error, a file that shrank while it was read among them,
// nothing of the step is left.
func (e *Engine) pass(ctx context.Context) error {
	err := mmap.Catch(func() error { return e.exec.Run(ctx, e.model.Forward) })
	if check := e.model.Info().Check; err == nil && check != nil {
		err = check()
	}
	if err != nil {
		e.exec.Step.Abort()
	}
	return err
}
