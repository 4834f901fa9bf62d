package engine

import (
	"context"
	"errors"
	"fmt"

	"grove/forest"
	"grove/text/token"
)

// logitsRows bounds the rows of a step that all want logits: a vocabulary's worth of memory each.
const logitsRows = 16

// Logits computes a text of its own and calls write with the logits behind each token from index first
// on, in order; a row is valid during the call. The cache is not searched for a prefix, whose rows would give none. Errors:
// [ErrContext] with both numbers, [ErrBusy], ctx's, the model's, write's.
func (e *Engine) Logits(ctx context.Context, ids []token.ID, first int, write func(row []float32) error) (err error) {
	if len(ids) > e.Context() {
		return fmt.Errorf("engine: %d tokens do not fit: %w of %d tokens", len(ids), ErrContext, e.Context())
	}
	if err := e.Generates(); err != nil {
		return err
	}
	seq, err := e.openSeq(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.closeSeq(seq)) }()
	for first > 0 {
		n := min(first, e.chunk)
		if err := e.rows(ctx, seq, ids[:n], nil); err != nil {
			return err
		}
		ids, first = ids[n:], first-n
	}
	n := min(len(ids), e.chunk, logitsRows)
	rows := make([]float32, n*e.vocab)
	for len(ids) > 0 {
		n = min(n, len(ids))
		if err := e.rows(ctx, seq, ids[:n], rows); err != nil {
			return err
		}
		for i := range n {
			if err := write(rows[i*e.vocab : (i+1)*e.vocab]); err != nil {
				return err
			}
		}
		ids = ids[n:]
	}
	return nil
}

// rows computes and commits a path of tokens, and copies the logits behind each to dst, so that nothing
// waits for their reader; nil: there is none.
func (e *Engine) rows(ctx context.Context, seq forest.Seq, ids []token.ID, dst []float32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	wanted := len(ids)
	if dst == nil {
		wanted = 0
	}
	end, err := e.path(ctx, seq, ids, forest.Row{Want: forest.Want{Logits: true}}, wanted)
	if err != nil {
		return err
	}
	for i := range wanted {
		copy(dst[i*e.vocab:(i+1)*e.vocab], e.exec.Result(i).Logits)
	}
	return e.cache.Commit(seq, end)
}
