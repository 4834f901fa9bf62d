package grove

import (
	"context"
	"fmt"

	"grove/engine/scoring"
	"grove/score"
	"grove/text/token"
	"grove/text/tokenizer"
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
type Scores struct {
	Continuations []Continuation
	PromptTokens  int // of the prompt; the unconditional one is not counted
	ReusedTokens  int // of these, found in the cache
	Tokens        int // of all continuations
}

// Score returns the log-probability of each continuation behind a prompt, token by token. The prompt is computed once; the continuations are
// branches of one tree, whose rows share steps. A continuation's scores have the bits of that continuation alone, and of the
// log-probabilities that plain decoding reports. [score.Split] says where a continuation's tokens begin. Errors: an [*OptionError] for a
// model that gives no such probabilities, or another setting; a continuation without a token, or too long with the prompt ([ErrContext]), by
// its place; [ErrBusy], ctx's, the model's.
func (m *Model) Score(ctx context.Context, prompt string, continuations []string, o ScoreOptions) (*Scores, error) {
	if err := m.scores(); err != nil {
		return nil, err
	}
	s, err := m.scoreTexts(ctx, prompt, continuations, o)
	if err != nil || o.Unconditional == nil {
		return s, err
	}
	o.Progress = nil
	texts := continuations
	if *o.Unconditional == "" {
		texts = score.Bodies(continuations)
	}
	free, err := m.scoreTexts(ctx, *o.Unconditional, texts, o)
	if err != nil {
		return nil, fmt.Errorf("the unconditional prompt: %w", err)
	}
	for i := range s.Continuations {
		s.Continuations[i].Unconditional = &free.Continuations[i].Logprob
	}
	return s, nil
}

// scores returns an [*OptionError] where the model has no log-probabilities of what follows a text, and [ErrClosed] where it is closed.
func (m *Model) scores() error {
	if err := m.generates(); err != nil {
		return err
	}
	if err := m.engine.CheckScores(); err != nil {
		return &OptionError{Err: err}
	}
	return nil
}

// scoreTexts scores texts behind one prompt.
func (m *Model) scoreTexts(ctx context.Context, prompt string, texts []string, o ScoreOptions) (*Scores, error) {
	prefix, all, err := score.Split(m.tokenizer, prompt, texts, func(text string) (ids []token.ID, err error) {
		err = m.parts(ctx, text, tokenizer.Options{}, func(part []token.ID) error {
			ids = append(ids, part...)
			return m.CheckPrompt(len(ids))
		})
		return ids, err
	})
	if err != nil {
		return nil, err
	}
	set, err := m.resident.AdapterSet(o.Adapters)
	if err != nil {
		return nil, err
	}
	r := Request{Priority: o.Priority, CacheSalt: o.CacheSalt, Private: o.Private, set: set}
	scored, reused, err := m.engine.Score(ctx, scoring.Request{Prefix: prefix, Continuations: all, Terms: r.terms(), Progress: o.Progress})
	if err != nil {
		return nil, m.busy(err)
	}
	s := &Scores{PromptTokens: len(prefix), ReusedTokens: reused}
	for i, text := range texts {
		s.Continuations = append(s.Continuations, score.New(text, scored[i]))
		s.Tokens += len(scored[i])
	}
	return s, nil
}
