package grove

import (
	"context"

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
	PromptTokens  int // of the prompt, and of the unconditional one
	ReusedTokens  int // of these, found in the cache
	Tokens        int // of all continuations, behind each prompt
}

// Scoring is continuations that are to be scored, as tokens. It is for one goroutine.
type Scoring struct {
	model    *Model
	texts    []string
	requests []scoring.Request // the prompt's, and the unconditional prompt's where there is one
}

// Score returns the log-probability of each continuation behind a prompt, token by token. The prompt is computed once; the continuations are
// branches of one tree, whose rows share steps. A continuation's scores have the bits of that continuation alone, and of the
// log-probabilities that plain decoding reports. [score.Split] says where a continuation's tokens begin. Errors: those of [Model.Scoring] and
// [Scoring.Compute].
func (m *Model) Score(ctx context.Context, prompt string, continuations []string, o ScoreOptions) (*Scores, error) {
	s, err := m.Scoring(ctx, prompt, continuations, o)
	if err != nil {
		return nil, err
	}
	return s.Compute(ctx)
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
	s := &Scoring{model: m, texts: continuations}
	if err := s.add(ctx, prompt, continuations, scoring.Request{Terms: terms, Progress: o.Progress}); err != nil || o.Unconditional == nil {
		return s, err
	}
	if *o.Unconditional == "" {
		continuations = score.Bodies(continuations)
	}
	if err := s.add(ctx, *o.Unconditional, continuations, scoring.Request{Terms: terms}); err != nil {
		return nil, score.Unconditional(err)
	}
	return s, nil
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

// add adds a request for the texts behind a prompt.
func (s *Scoring) add(ctx context.Context, prompt string, texts []string, r scoring.Request) (err error) {
	m := s.model
	r.Prefix, r.Continuations, err = score.Split(m.tokenizer, prompt, texts, func(text string) (ids []token.ID, err error) {
		err = m.parts(ctx, text, tokenizer.Options{}, func(part []token.ID) error {
			ids = append(ids, part...)
			return m.CheckPrompt(len(ids))
		})
		return ids, err
	})
	if err != nil {
		return err
	}
	s.requests = append(s.requests, r)
	return score.CheckLengths(r.Prefix, r.Continuations, m.engine.Context(), ErrContext)
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

// Compute returns the scores. Errors: [ErrBusy], ctx's, the model's.
func (s *Scoring) Compute(ctx context.Context) (*Scores, error) {
	out := &Scores{Continuations: make([]Continuation, len(s.texts))}
	out.PromptTokens, out.Tokens = s.Tokens()
	for n, r := range s.requests {
		scored, reused, err := s.model.engine.Score(ctx, r)
		if err != nil {
			return nil, s.model.busy(err)
		}
		out.ReusedTokens += reused
		for i, tokens := range scored {
			c := score.New(s.texts[i], tokens)
			if n == 0 {
				out.Continuations[i] = c
			} else {
				out.Continuations[i].Unconditional = &c.Logprob
			}
		}
	}
	return out, nil
}
