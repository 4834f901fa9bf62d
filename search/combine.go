package search

import (
	"context"
	"errors"
	"fmt"

	"grove/engine"
	"grove/sample"
	"grove/text/token"
)

// Combiner draws one token for two sequences, from logits that a function makes of those of both: a model steered by
// another, or one text seen in two ways. The first sequence has its [Combiner.Stage] among [engine.Answer.Stages]. It
// is for one goroutine.
type Combiner struct {
	// Combine changes the first sequence's logits by those of the other.
	Combine func(logits, other []float32)

	first, other *engine.Sequence
	logits       []float32 // of the other
}

// Join names the sequences, of which the first has the stage. They may be of different engines; their models have the
// same vocabulary. It returns an error where a sequence drafts: drafts would be verified by other logits than the
// token is drawn from.
func (c *Combiner) Join(first, other *engine.Sequence) error {
	if first.Drafts() || other.Drafts() {
		return errors.New("search: combining a sequence that drafts: its drafts are not verified by the combined logits; turn drafting off")
	}
	c.first, c.other = first, other
	return nil
}

// Next draws the token behind both texts and appends it to them. Both are computed in the same step where they are of
// one engine. Errors are those of [engine.Sequence.Next].
func (c *Combiner) Next(ctx context.Context) (engine.SampledToken, error) {
	computed := make(chan error, 1)
	go func() {
		var err error
		c.logits, err = c.other.Logits(ctx)
		computed <- err
	}()
	logits, err := c.first.Logits(ctx)
	if err = errors.Join(err, <-computed); err != nil {
		return engine.SampledToken{}, err
	}
	if len(logits) != len(c.logits) {
		return engine.SampledToken{}, fmt.Errorf("search: combining logits of %d and of %d tokens: the vocabularies differ", len(logits), len(c.logits))
	}
	d, err := c.first.Next(ctx)
	if err != nil {
		return d, err
	}
	return d, c.other.Follow(d.ID)
}

// Stage returns the stage of the first sequence.
func (c *Combiner) Stage() sample.Stage { return combining{c} }

type combining struct{ *Combiner }

// Start implements [sample.Stage].
func (combining) Start([]token.ID) sample.StageState { return 0 }

// Next implements [sample.Stage].
func (combining) Next(s sample.StageState, _ token.ID) sample.StageState { return s }

// Apply implements [sample.Stage].
func (c combining) Apply(_ sample.StageState, logits []float32) { c.Combine(logits, c.logits) }
