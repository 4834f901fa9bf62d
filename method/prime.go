package method

import (
	"context"
	"errors"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/text/token"
)

// Primer is a method that can begin with what was computed of the model before any text: a method of the kind [KindLogits] with what the model says
// behind single tokens (a cold start that Bigram Subnetworks, 2025, suggests: the model's bigrams are in it), as [Successors.MarshalBinary] returns
// it, and draft-verify with a set of layers. Where it is a [Saver], too, what texts taught it counts more, and alone is what MarshalBinary returns.
type Primer interface {
	Method
	// Prime takes over such a state. It is called before any text. On error nothing has changed.
	Prime(state []byte) error
}

// Prime runs tokens, each by itself behind the token that begins texts ([token.None]: there is none), on the first layers of a model (0: all),
// and hands the largest logits behind them to take, in parts. Errors: [ErrBusy]; those of [Trunk.Grow].
func Prime(ctx context.Context, m Model, begin token.ID, ids []token.ID, layers int, take func(rows []RowResult)) (err error) {
	b, err := m.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if begin != token.None {
		first, err := b.Grow(ctx, []Row{{Row: forest.Row{ID: begin}}})
		if err == nil {
			err = b.Commit(first[0].Node)
		}
		if err != nil {
			return err
		}
	}
	most := min(MaxLive, m.Size().Rows)
	rows, gave := make([]Row, 0, most), make([]RowResult, 0, most)
	for len(ids) > 0 {
		n := min(most, len(ids))
		rows, gave = rows[:0], gave[:0]
		for _, id := range ids[:n] {
			rows = append(rows, Row{Row: forest.Row{ID: id, To: layers, Want: forest.Want{Top: SuccessorWidth}}})
		}
		results, err := b.Grow(ctx, rows)
		if err != nil {
			return err
		}
		for i := range results {
			gave = append(gave, RowResult{ID: ids[i], Parent: -1, Result: compute.Result{Top: results[i].Top}})
		}
		take(gave)
		if err := b.Drop(); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}
