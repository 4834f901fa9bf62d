package engine

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/compute"
	"grove/internal/engine/adapters"
	"grove/internal/engine/reading"
	"grove/internal/forest"
	"grove/internal/text/token"
)

// logitsRows bounds the rows of a step that want logits of one text: a vocabulary's worth of memory each.
const logitsRows = 16

// States computes a text of its own and calls write with what is read of each token, in order. A row is valid during the call. Tokens see what the mask
// says. An encoder-decoder gives its encoder's states. Errors: a reading that the model does not have; [ErrContext] with both numbers, [ErrBusy], ctx's, the
// model's, write's.
func (e *Engine) States(ctx context.Context, ids []token.ID, r reading.Reading, write func(row []float32) error) error {
	if e.encoder != nil {
		return e.encoder.States(ctx, ids, r, write)
	}
	if err := r.Fit(e.steps.Model.Info()); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if n := len(ids); r.Whole() && n > e.steps.Chunk && n <= e.Context() {
		return fmt.Errorf("engine: %d tokens are read in one step, which has %d at most: %w", n, e.steps.Chunk, ErrContext)
	}
	j := &Text{IDs: ids, Row: forest.Row{To: r.Exit, Want: forest.Want{State: r.State || r.Layers == nil && !r.Stream, Embedding: r.Embeds}}, Most: e.steps.Chunk, Whole: r.Whole()}
	for _, l := range r.Layers {
		j.Row.Want.Hidden = j.Row.Want.Hidden.With(l)
	}
	if r.Stream {
		j.Row.Want.Hidden = j.Row.Want.Hidden.With(r.Exit - 1)
	}
	j.Row.Block, j.Row.Causal = r.Block(), r.Causal
	j.Values = func(dst []float32, r *compute.Result) []float32 {
		for _, h := range r.Hidden {
			dst = append(dst, h...)
		}
		return append(dst, r.State...)
	}
	return e.read(ctx, j, write)
}

// Logits computes a text of its own and calls write with the logits behind each token from index first
// on, in order; a row is valid during the call. The cache is not searched for a prefix, whose rows would give none. Errors:
// [ErrContext] with both numbers, [ErrBusy], ctx's, the model's, write's.
func (e *Engine) Logits(ctx context.Context, ids []token.ID, first int, write func(row []float32) error) error {
	if err := errors.Join(e.CheckGenerates(), e.checkNext(), e.CheckSource("a text alone has no logits")); err != nil {
		return err
	}
	j := &Text{IDs: ids, First: first, Row: forest.Row{Want: forest.Want{Logits: true}}, Most: min(e.steps.Chunk, logitsRows)}
	j.Values = func(dst []float32, r *compute.Result) []float32 { return append(dst, r.Logits...) }
	return e.read(ctx, j, write)
}

// Adapt makes a set of adapters that of the texts that [Engine.States] and [Engine.Logits] compute; nil: none.
func (e *Engine) Adapt(a *adapters.Set) { e.own.Store(a) }

// read computes a text of its own.
func (e *Engine) read(ctx context.Context, j *Text, write func(row []float32) error) error {
	if len(j.IDs) > e.Context() {
		return fmt.Errorf("engine: %d tokens do not fit: %w of %d tokens", len(j.IDs), ErrContext, e.Context())
	}
	return j.Read(ctx, &e.steps, e.own.Load(), write)
}
