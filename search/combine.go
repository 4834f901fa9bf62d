package search

import (
	"context"
	"errors"
	"math"

	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// Combiner draws one token for several sequences, from logits that a function makes of those of all: a model steered by
// others, or one text seen in several ways. The first sequence has its [Combiner.Stage] among [engine.Answer.Stages]. It
// is for one goroutine.
type Combiner struct {
	// Combine changes the first sequence's logits by those of the others, each as long as the first's; a token that
	// one of the models does not have has minus infinity. nil: the logits stay as they are.
	Combine func(logits []float32, others [][]float32)

	first    *engine.Sequence
	others   []*engine.Sequence
	logits   [][]float32 // of the others
	rows     [][]float32 // the same, as long as the first's
	computed chan error
}

// Join names the sequences, of which the first has the stage. They may be of different engines; their models have the
// same vocabulary. It returns an error where a sequence drafts: drafts would be verified by other logits than the
// token is drawn from.
func (c *Combiner) Join(first *engine.Sequence, others ...*engine.Sequence) error {
	for _, s := range append([]*engine.Sequence{first}, others...) {
		if s.Drafts() {
			return errors.New("search: combining a sequence that drafts: its drafts are not verified by the combined logits; turn drafting off")
		}
	}
	c.first, c.others = first, others
	c.logits, c.rows, c.computed = make([][]float32, len(others)), make([][]float32, len(others)), make(chan error, len(others))
	return nil
}

// Next draws the token behind all texts and appends it to them. Those of one engine are computed in the same step. Errors are those of
// [engine.Sequence.Next]; with [engine.ErrContext] some of the texts may have the token.
func (c *Combiner) Next(ctx context.Context) (d engine.SampledToken, err error) {
	for i, s := range c.others {
		go func() {
			var err error
			c.logits[i], err = s.Logits(ctx)
			c.computed <- err
		}()
	}
	logits, err := c.first.Logits(ctx)
	for range c.others {
		err = errors.Join(err, <-c.computed)
	}
	if err != nil {
		return d, err
	}
	for i := range c.logits {
		c.rows[i] = fit(c.rows[i], c.logits[i], len(logits))
	}
	if d, err = c.first.Next(ctx); err != nil {
		return d, err
	}
	for _, s := range c.others {
		if err := s.Follow(d.ID); err != nil {
			return d, err
		}
	}
	return d, nil
}

// fit returns logits with the length n, in room where it is too short: one of two models with the same tokens may have padding behind them.
func fit(room, logits []float32, n int) []float32 {
	if len(logits) >= n {
		return logits[:n]
	}
	room = append(room[:0], logits...)
	for len(room) < n {
		room = append(room, float32(math.Inf(-1)))
	}
	return room
}

// Stage returns the stage of the first sequence.
func (c *Combiner) Stage() sample.Stage { return combining{c} }

type combining struct{ *Combiner }

// Start implements [sample.Stage].
func (combining) Start([]token.ID) sample.StageState { return 0 }

// Next implements [sample.Stage].
func (combining) Next(s sample.StageState, _ token.ID) sample.StageState { return s }

// Apply implements [sample.Stage].
func (c combining) Apply(_ sample.StageState, logits []float32) {
	if c.Combine != nil {
		c.Combine(logits, c.rows)
	}
}

// String names the stage in errors.
func (combining) String() string { return "combination of models" }
