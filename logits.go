package grove

import (
	"context"
	"fmt"

	"grove/token"
)

// Logits computes exactly the tokens ids and calls write with the logits behind each, in order: one
// value for each token of the vocabulary. A row is valid during the call. An id out of range is an error
// before anything is computed; write's error ends the computation and is returned. When ctx ends, so does
// the computation, within a layer's time.
func (m *Model) Logits(ctx context.Context, ids []token.ID, write func(row []float32) error) error {
	if err := m.generates(); err != nil {
		return err
	}
	n := m.model.Info().Vocabulary
	for i, id := range ids {
		if id < 0 || int(id) >= n {
			return fmt.Errorf("grove: token id %d at index %d is out of range: the vocabulary has %d", id, i, n)
		}
	}
	return m.engine.Logits(ctx, ids, 0, write)
}
