// scorer.go scores texts behind a prompt with an engine.

package score

import (
	"context"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Scorer has what texts are scored by.
type Scorer struct {
	Engine    *engine.Engine
	Tokenizer *tokenizer.Tokenizer
	Encode    func(ctx context.Context, text string) ([]token.ID, error) // without tokens around the text
}

// Scores are continuations that were scored behind a prompt.
type Scores struct {
	Continuations []Continuation
	PromptTokens  int // of the prompt, and of the unconditional one
	ReusedTokens  int // of these, found in the cache
	Tokens        int // of all continuations, behind each prompt
}

// Scoring is continuations that are to be scored, as tokens. It is for one goroutine.
type Scoring struct {
	engine   *engine.Engine
	texts    []string
	requests []engine.ScoreRequest // the prompt's, and the unconditional prompt's where there is one
}

// Prepare returns what is to be computed for texts behind a prompt, and behind an unconditional one where that is not nil. r has the terms. Errors: a [*score.Error], those of Encode.
func (k *Scorer) Prepare(ctx context.Context, prompt string, texts []string, unconditional *string, r engine.ScoreRequest) (*Scoring, error) {
	s := &Scoring{engine: k.Engine, texts: texts}
	if err := k.add(ctx, s, prompt, texts, r); err != nil || unconditional == nil {
		return s, err
	}
	if *unconditional == "" {
		texts = Bodies(texts)
	}
	if err := k.add(ctx, s, *unconditional, texts, engine.ScoreRequest{Terms: r.Terms}); err != nil {
		return nil, Unconditional(err)
	}
	return s, nil
}

// add adds a request for texts behind one prompt.
func (k *Scorer) add(ctx context.Context, s *Scoring, prompt string, texts []string, r engine.ScoreRequest) (err error) {
	r.Prefix, r.Continuations, err = Split(k.Tokenizer, prompt, texts, func(text string) ([]token.ID, error) { return k.Encode(ctx, text) })
	if err != nil {
		return err
	}
	s.requests = append(s.requests, r)
	return CheckLengths(r.Prefix, r.Continuations, k.Engine.Context(), engine.ErrContext)
}

// Tokens returns the tokens of the prompts, and those of all continuations, behind each of them.
func (s *Scoring) Tokens() (prompts, continuations int) {
	for _, r := range s.requests {
		prompts += len(r.Prefix)
		for _, ids := range r.Continuations {
			continuations += len(ids)
		}
	}
	return prompts, continuations
}

// Compute returns the scores. Errors: [engine.ErrBusy], ctx's, the model's.
func (s *Scoring) Compute(ctx context.Context) (*Scores, error) {
	out := &Scores{Continuations: make([]Continuation, len(s.texts))}
	out.PromptTokens, out.Tokens = s.Tokens()
	for n, r := range s.requests {
		scored, reused, err := s.engine.Score(ctx, r)
		if err != nil {
			return nil, err
		}
		out.ReusedTokens += reused
		for i, tokens := range scored {
			c := New(s.texts[i], tokens)
			if n == 0 {
				out.Continuations[i] = c
			} else {
				out.Continuations[i].Unconditional = &c.Logprob
			}
		}
	}
	return out, nil
}
