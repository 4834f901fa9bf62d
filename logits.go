package grove

import (
	"context"
	"fmt"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// Logits computes exactly the tokens ids and calls write with the logits behind each, in order: one
// value for each token of the vocabulary. A row is valid during the call. An id out of range is an error
// before anything is computed; write's error ends the computation and is returned. When ctx ends, so does
// the computation, within a layer's time.
func (m *Model) Logits(ctx context.Context, ids []token.ID, write func(row []float32) error) error {
	if err := m.generates(); err != nil {
		return err
	}
	if err := m.checkIDs(ids); err != nil {
		return err
	}
	return m.busy(m.engine.Logits(ctx, ids, 0, write))
}

// checkIDs returns an error where an id is out of range.
func (m *Model) checkIDs(ids []token.ID) error {
	n := m.Vocabulary()
	for i, id := range ids {
		if id < 0 || int(id) >= n {
			return fmt.Errorf("grove: token id %d at index %d is out of range: the vocabulary has %d", id, i, n)
		}
	}
	return nil
}

// LogprobRow is the log-probabilities of what may follow a text. It is valid during the call that it is given to.
type LogprobRow struct {
	logits  []float32
	sampler *sample.Chain
}

// Of returns the natural logarithm of the model's probability of a token, which is of the vocabulary.
func (r LogprobRow) Of(id token.ID) float32 { return r.sampler.Logprob(r.logits, id) }

// Top returns the n likeliest tokens, the likeliest first.
func (r LogprobRow) Top(n int) ([]TopLogprob, error) { return r.sampler.Top(r.logits, n) }

// Logprobs is [Model.Logits] for log-probabilities, those that [Token] has.
func (m *Model) Logprobs(ctx context.Context, ids []token.ID, write func(row LogprobRow) error) error {
	s, err := sample.NewChain(sample.Settings{}, m.model.Info().Vocabulary)
	if err != nil {
		return err
	}
	return m.Logits(ctx, ids, func(row []float32) error { return write(LogprobRow{row, s}) })
}
