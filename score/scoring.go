package score

import (
	"context"

	"grove/engine"
	"grove/engine/scoring"
	"grove/text/token"
	"grove/text/tokenizer"
)

// Scores are continuations that were scored behind a prompt.
type Scores struct {
	Continuations []Continuation
	PromptTokens  int // of the prompt, and of the unconditional one
	ReusedTokens  int // of these, found in the cache
	Tokens        int // of all continuations, behind each prompt
}

// Scoring is continuations that are to be scored by an engine, as tokens. It is for one goroutine.
type Scoring struct {
	Engine    *engine.Engine
	Texts     []string // of the continuations
	Tokenizer *tokenizer.Tokenizer
	Encode    func(text string) ([]token.ID, error) // by the tokenizer, without tokens around the text
	Fault     func(error) error                     // makes the engine's errors the caller's

	requests []scoring.Request // the prompt's, and the unconditional prompt's where there is one
}

// Add adds a request for texts behind a prompt: first the prompt's, then that of the unconditional one. Errors: an [*Error], those of Encode.
func (s *Scoring) Add(prompt string, texts []string, r scoring.Request) (err error) {
	if r.Prefix, r.Continuations, err = Split(s.Tokenizer, prompt, texts, s.Encode); err != nil {
		return err
	}
	s.requests = append(s.requests, r)
	return CheckLengths(r.Prefix, r.Continuations, s.Engine.Context(), engine.ErrContext)
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

// Compute returns the scores. Errors: those of [engine.Engine.Score], by Fault.
func (s *Scoring) Compute(ctx context.Context) (*Scores, error) {
	out := &Scores{Continuations: make([]Continuation, len(s.Texts))}
	out.PromptTokens, out.Tokens = s.Tokens()
	for n, r := range s.requests {
		scored, reused, err := s.Engine.Score(ctx, r)
		if err != nil {
			return nil, s.Fault(err)
		}
		out.ReusedTokens += reused
		for i, tokens := range scored {
			c := New(s.Texts[i], tokens)
			if n == 0 {
				out.Continuations[i] = c
			} else {
				out.Continuations[i].Unconditional = &c.Logprob
			}
		}
	}
	return out, nil
}
