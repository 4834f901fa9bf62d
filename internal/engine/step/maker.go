// Package step makes steps: each is one forward pass over the rows of all jobs whose callers wait. It has the trunks, with
// their slots and pages, and the scheduler, which shares out the rows of a step.
package step

import (
	"context"
	"sync"
	"time"

	"grove/internal/compute"
	"grove/internal/engine/plan"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/text/token"
	"grove/internal/turns"
	"grove/method"
)

// ErrBusy reports that no slot is free: as many sequences are open as there is room for, and as may wait.
var ErrBusy = method.ErrBusy

// Config has the model, the cache and the bounds of a maker.
type Config struct {
	Model   model.Model
	Cache   *kv.Cache
	Exec    *compute.Exec
	Experts plan.Mixture
	Chunk   int       // rows of a step
	Seqs    int       // slots
	MaxOpen int       // sequences that may be open
	Mask    *token.ID // of a model whose rows give the token of their own place: by it they ask for the next one; nil: they give that
}

// Maker makes the steps of a model, one after another, each of the jobs of all callers that wait. It is safe for concurrent use;
// its lock is held while a step is made, and guards Cache, Exec and the trunks.
type Maker struct {
	Config
	Load  Figures         // has a lock of its own
	Costs plan.SharedCost // has a lock of its own

	// How long a sequence that nobody calls for keeps its pages and its slot. They are not changed once steps are made.
	IdleGrace, SlotGrace time.Duration

	queue    Queue[*Trunk]
	mu       sync.Mutex
	admitted []*Trunk  // those that have a slot
	adapters []adapted // by number less one
	passed   int       // trunks that got slots before older ones, since one was owed its turn
	step     Step

	kept      int         // slots that trunks have for their forks
	reserving bool        // a trunk waits for several slots: free ones are kept for it
	order     turns.Order // of those that wait for slots
	waiting   []*Trunk    // these, while their order is made
}

// Init makes a maker ready, which may then not be copied.
func (m *Maker) Init(c Config) {
	m.Config, m.IdleGrace, m.SlotGrace = c, idleGrace, slotGrace
	m.step.maker, m.step.ctx.Context = m, context.Background()
	m.step.asks.init(c.Mask, 2*c.Chunk)
	m.noteSlots()
}

// Lock waits until no step is made, and keeps it so until Unlock.
func (m *Maker) Lock() { m.mu.Lock() }

// Unlock ends what Lock began.
func (m *Maker) Unlock() { m.mu.Unlock() }

// Close ends all calls with err, within a layer's time, and returns when no step runs and none will.
func (m *Maker) Close(err error) { m.queue.Close(err) }

// Closed returns the error of Close once that was called.
func (m *Maker) Closed() error { return m.queue.Closed() }

// Cancel ends the running call of a trunk within a step, and refuses all later ones, with [ErrCancelled].
func (m *Maker) Cancel(t *Trunk) { m.queue.Cancel(t) }

// Notify tells that trunks that wait may have room now.
func (m *Maker) Notify() { m.queue.Notify() }

// Waiting returns how many callers wait.
func (m *Maker) Waiting() int { return m.queue.Waiting() }

// Admitted returns how many slots trunks have, those for forks included. The caller holds the lock.
func (m *Maker) Admitted() int { return len(m.admitted) + m.kept }

// run passes the step's rows through the model. On error nothing of the step is left.
func (m *Maker) run() error { return m.Exec.Run(&m.step.ctx, m.Model.Forward) }
