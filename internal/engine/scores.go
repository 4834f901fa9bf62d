package engine

import (
	"context"
	"errors"
	"fmt"
)

// CheckScores returns an error where the model has no log-probabilities of what follows a text: [ErrEncoder], [ErrSource], a model of masked diffusion.
func (e *Engine) CheckScores() error {
	return errors.Join(e.CheckGenerates(), e.checkNext(), e.CheckSource("it scores no continuations"))
}

// Score scores continuations behind one prefix; see [main.Score]. Errors: those of CheckScores; an empty
// prefix or continuation; a token that is none; [ErrContext] with the continuation and both numbers; [ErrBusy], ctx's, the model's.
func (e *Engine) Score(ctx context.Context, r ScoreRequest) (scores [][]ScoreToken, reused int, err error) {
	if err := e.CheckScores(); err != nil {
		return nil, 0, err
	}
	if len(r.Prefix) == 0 {
		return nil, 0, errors.New("engine: continuations are scored behind a prefix of no tokens; give one token at least")
	}
	if err := errors.Join(r.Terms.Check(), e.fits(r.Prefix, 0)); err != nil {
		return nil, 0, err
	}
	for i, ids := range r.Continuations {
		err := e.fits(ids, len(r.Prefix))
		if len(ids) == 0 {
			err = errors.New("engine: it has no tokens")
		}
		if err != nil {
			return nil, 0, fmt.Errorf("continuation %d: %w", i, err)
		}
	}
	if len(r.Continuations) == 0 {
		return nil, 0, nil
	}
	return Score(ctx, &e.steps, r)
}
