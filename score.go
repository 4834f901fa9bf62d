package grove

import (
	"context"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/score"
)

// Continuation is a text that was scored behind a prompt.
type Continuation = score.Continuation

// ScoreOptions says how continuations are scored. The zero value is the usual case.
type ScoreOptions struct {
	// Unconditional is a second prompt, which holds no question, such as "Answer:": each continuation is scored behind it too, for the
	// normalisation by mutual information. Behind an empty one it is scored without the white space at its beginning. nil: none.
	Unconditional *string

	CacheSalt string              // as [Request.CacheSalt]
	Private   bool                // as [Request.Private]
	Priority  int                 // as [Request.Priority]
	Adapters  []AdapterScale      // as [Request.Adapters]
	Progress  func(done, all int) // as [Request.Progress]
}

// Scores are continuations that were scored behind a prompt.
type Scores = score.Scores

// Scoring is continuations that are to be scored, as tokens. It is for one goroutine.
type Scoring = score.Scoring

// Score returns the log-probability of each continuation behind a prompt, token by token. The prompt is computed once; the continuations are
// branches of one tree, whose rows share steps. A continuation's scores have the bits of that continuation alone, and of the
// log-probabilities that plain decoding reports. [score.Split] says where a continuation's tokens begin. Errors: those of [Model.Scoring] and
// [Scoring.Compute].
func (m *Model) Score(ctx context.Context, prompt string, continuations []string, o ScoreOptions) (*Scores, error) {
	s, err := m.Scoring(ctx, prompt, continuations, o)
	if err != nil {
		return nil, err
	}
	scores, err := s.Compute(ctx)
	return scores, m.busy(err)
}

// Scoring prepares what [Model.Score] computes. Errors: [Model.CheckScores]; an [*OptionError] for another setting; a [*score.Error] for a
// continuation without a token, or one that is too long with the prompt, which is an [ErrContext] too; ctx's.
func (m *Model) Scoring(ctx context.Context, prompt string, continuations []string, o ScoreOptions) (*Scoring, error) {
	if err := m.CheckScores(); err != nil {
		return nil, err
	}
	set, err := m.resident.AdapterSet(o.Adapters)
	if err != nil {
		return nil, err
	}
	terms := (&Request{Priority: o.Priority, CacheSalt: o.CacheSalt, Private: o.Private, set: set}).terms()
	if err := terms.Check(); err != nil {
		return nil, &OptionError{Err: err}
	}
	k := score.Scorer{Engine: m.engine, Tokenizer: m.tokenizer, Encode: func(ctx context.Context, text string) (ids []token.ID, err error) {
		err = m.parts(ctx, text, tokenizer.Options{}, func(part []token.ID) error {
			ids = append(ids, part...)
			return m.CheckPrompt(len(ids))
		})
		return ids, err
	}}
	return k.Prepare(ctx, prompt, continuations, o.Unconditional, engine.ScoreRequest{Terms: terms, Progress: o.Progress})
}

// CheckScores returns an [*OptionError] where the model has no log-probabilities of what follows a text, and [ErrClosed] where it is closed.
func (m *Model) CheckScores() error {
	if err := m.generates(); err != nil {
		return err
	}
	if err := m.engine.CheckScores(); err != nil {
		return &OptionError{Err: err}
	}
	return nil
}
