package engine

import (
	"context"
	"errors"

	"grove/internal/text/token"
)

// Become makes the sequence a copy of another one of its family: it goes on from that one's text, in its own slot and with its own
// sample index. It shares the text's full pages; the rest is copied. What either has drawn and not taken is forgotten.
// Errors: [ErrClosed], a sequence of another family.
func (s *Sequence) Become(from *Sequence) error {
	switch err := errors.Join(s.usable(), from.usable()); {
	case err != nil:
		return err
	case s.family != from.family:
		return errors.New("engine: a sequence becomes one that it has no forks in common with; fork it")
	case s == from:
		return nil
	}
	from.round.forget()
	s.round.forget()
	e := s.e
	e.steps.Lock()
	defer e.steps.Unlock()
	for _, settle := range []func() error{from.settle, s.settle} {
		if err := settle(); err != nil {
			return err
		}
	}
	if err := e.steps.Copy(&s.trunk, &from.trunk); err != nil {
		return err
	}
	index := s.answer.SampleIndex
	s.chain = from.chain.Fork()
	s.chain.SetSampleIndex(index)
	s.text, s.known, s.prompt, s.trunk.Begun = append(s.text[:0], from.text...), from.known, from.prompt, from.trunk.Begun
	copy(s.logits, from.logits)
	if s.drafts != nil {
		s.drafts.Clear(token.None) // rows of the text as it was
		s.drafts.Restart()
	}
	return nil
}

// Probs returns the probabilities by which Next draws the token behind the text, of all tokens of the vocabulary, in p, which it makes
// as long as need be. Errors are those of [Sequence.Logits] and of the draw.
func (s *Sequence) Probs(ctx context.Context, p []float64) ([]float64, error) {
	logits, err := s.Logits(ctx)
	if err != nil {
		return p, err
	}
	if cap(p) < len(logits) {
		p = make([]float64, len(logits))
	}
	p = p[:len(logits)]
	return p, s.chain.Probs(p, 0, logits, len(s.text))
}

// Describe returns a token as Next does one that it draws behind the text. The text stays as it is. Errors are those of [Sequence.Logits].
func (s *Sequence) Describe(ctx context.Context, id token.ID) (SampledToken, error) {
	logits, err := s.Logits(ctx)
	if err != nil {
		return SampledToken{}, err
	}
	return s.answer.describe(s.chain, 0, logits, len(s.text), id)
}

// Pick draws a token by probabilities of the caller's, with the noise by which Next draws the token behind the text; [token.None] where no
// token has any. The text stays as it is.
func (s *Sequence) Pick(p []float64) token.ID { return s.chain.Pick(p, len(s.text), 0) }

// Engine returns the sequence's engine.
func (s *Sequence) Engine() *Engine { return s.e }
