package engine

import (
	"context"
	"errors"
	"fmt"

	"grove/forest"
	"grove/text/token"
)

// States computes a text of its own and calls write with the state behind each token, in order: the stream
// behind the final norm. A row is valid during the call. All tokens of an encoder's text see each other; those
// of any other model see what is before them. Errors: [ErrContext] with both numbers, [ErrBusy], ctx's, the
// model's, write's.
func (e *Engine) States(ctx context.Context, ids []token.ID, write func(row []float32) error) (err error) {
	if len(ids) > e.Context() {
		return fmt.Errorf("engine: %d tokens do not fit: %w of %d tokens", len(ids), ErrContext, e.Context())
	}
	seq, err := e.openSeq(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.closeSeq(seq)) }()
	row := forest.Row{Want: forest.Want{State: true}}
	if e.model.Info().Encoder {
		row.Block = 1
	}
	for len(ids) > 0 {
		n := min(len(ids), e.chunk)
		states, err := e.states(ctx, seq, ids[:n], row)
		if err != nil {
			return err
		}
		for width := len(states) / n; len(states) > 0; states = states[width:] {
			if err := write(states[:width]); err != nil {
				return err
			}
		}
		ids = ids[n:]
	}
	return nil
}

// states computes and commits a path of tokens and returns a copy of the states behind each, so that nothing
// waits for their reader.
func (e *Engine) states(ctx context.Context, seq forest.Seq, ids []token.ID, row forest.Row) ([]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	end, err := e.path(ctx, seq, ids, row, len(ids))
	if err != nil {
		return nil, err
	}
	var out []float32
	for i := range ids {
		out = append(out, e.exec.Result(i).State...)
	}
	return out, e.cache.Commit(seq, end)
}
