package openai

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
	"grove/internal/text/token"
	"grove/score"
	"grove/server/access"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// scoreRequest is the body of /v1/score: a prompt and continuations, or pairs of texts for a model with a head that ranks, as vLLM has them.
type scoreRequest struct {
	Model string `json:"model" bytes:"1024"`

	Prompt        *string  `json:"prompt"`
	Continuations []string `json:"continuations" most:"1024"`
	Unconditional *string  `json:"unconditional"`
	TokenLogprobs bool     `json:"token_logprobs"`
	CacheSalt     string   `json:"cache_salt" bytes:"1024"`
	Priority      int      `json:"priority" range:"-10 10"` // the lower, the earlier

	First  texts `json:"text_1" most:"2048"`
	Second texts `json:"text_2" most:"2048"`
}

// texts are a text, or a list of texts.
type texts []string

// ReadJSON implements [wire.Own].
func (t *texts) ReadJSON(r *wire.Reader) error {
	one := func(int) error {
		text, err := r.Text()
		*t = append(*t, text)
		return err
	}
	if *t = (texts{}); r.Kind() == jsontext.KindString {
		return one(0)
	}
	if r.Kind() != jsontext.KindBeginArray {
		return r.Refuse("it must be a text, or a list of texts")
	}
	return r.List(one)
}

// check returns whether the body has pairs, or what is wrong with its fields.
func (q *scoreRequest) check() (pairs bool, err error) {
	pairs = q.First != nil || q.Second != nil
	if !pairs {
		switch {
		case q.Prompt == nil:
			return false, wire.Refuse("prompt", "prompt is missing; a model with a head that ranks takes text_1 and text_2 instead")
		case len(q.Continuations) == 0:
			return false, wire.Refuse("continuations", "continuations is missing, or empty")
		}
		return false, nil
	}
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"prompt", q.Prompt != nil}, {"continuations", q.Continuations != nil}, {"unconditional", q.Unconditional != nil},
		{"token_logprobs", q.TokenLogprobs}, {"cache_salt", q.CacheSalt != ""}, {"priority", q.Priority != 0},
	} {
		if f.given {
			return true, wire.Refuse(f.name, "%s: text_1 and text_2 are given, which a model with a head that ranks reads; leave one form out", f.name)
		}
	}
	switch {
	case len(q.First) == 0:
		return true, wire.Refuse("text_1", "text_1 is missing, or empty")
	case len(q.Second) == 0:
		return true, wire.Refuse("text_2", "text_2 is missing, or empty")
	case len(q.First) != 1 && len(q.First) != len(q.Second):
		return true, wire.Refuse("text_1", "text_1 has %d texts and text_2 %d; it must have one, or as many", len(q.First), len(q.Second))
	}
	return true, nil
}

// scores handles /v1/score.
func scores(x *driver.Request) error {
	q := new(scoreRequest)
	if err := x.Read(q); err != nil {
		return err
	}
	pairs, err := q.check()
	if err != nil {
		return err
	}
	open, err := x.Model(q.Model)
	if err != nil {
		return err
	}
	if pairs {
		return q.pairs(x, open)
	}
	return q.generative(x, open)
}

// pairs scores pairs by the head that ranks.
func (q *scoreRequest) pairs(x *driver.Request, open *serving.OpenModel) error {
	if err := open.Model.CheckRank(); err != nil {
		return wire.Refuse("text_1", "text_1: %s; a model that generates scores a prompt and continuations", wire.Plain(err))
	}
	a := ranking{request: &request{}, open: open}
	defer func() { access.CallerOf(x.R.Context()).Spend(a.tokens) }()
	err := open.Compute(x.R.Context(), x.ID, func(ctx context.Context) error {
		for i, second := range q.Second {
			a.Query = q.First[min(i, len(q.First)-1)]
			if err := a.score(ctx, x, i, second, "text_2"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	type item struct {
		Index  int     `json:"index"`
		Object string  `json:"object"`
		Score  float32 `json:"score"`
	}
	data := []item{}
	for _, r := range a.best {
		data = append(data, item{r.Index, "score", r.Score})
	}
	return x.Reply(answerOf(x, open, data, nil, tokenCounts{PromptTokens: a.tokens, TotalTokens: a.tokens}))
}

// mostScored bounds the tokens of the continuations of a request, behind all prompts.
const mostScored = 1 << 16

// generative scores continuations behind a prompt.
func (q *scoreRequest) generative(x *driver.Request, open *serving.OpenModel) error {
	if err := open.Model.CheckScores(); err != nil {
		return wire.Refuse("prompt", "prompt: %s", wire.Plain(err))
	}
	caller, priority := access.CallerOf(x.R.Context()), access.Urgency(x.R.Context(), q.Priority)
	o := grove.ScoreOptions{Unconditional: q.Unconditional, CacheSalt: caller.Salt(q.CacheSalt), Priority: -priority}
	if err := caller.MayAsk(priority); err != nil {
		return err
	}
	var s *grove.Scoring
	err := x.Work(func(ctx context.Context) (err error) {
		s, err = open.Model.Scoring(ctx, *q.Prompt, q.Continuations, o)
		return err
	})
	if err != nil {
		return blame(err)
	}
	prompts, tokens := s.Tokens()
	if tokens > mostScored {
		return wire.Refuse("continuations", "continuations: they have %d tokens; a request may have %d", tokens, mostScored)
	}
	defer caller.Spend(prompts + tokens)
	var got *grove.Scores
	err = open.Compute(x.R.Context(), x.ID, func(ctx context.Context) (err error) {
		got, err = s.Compute(ctx)
		return err
	})
	if err != nil {
		return err
	}
	x.Server.Pool.Metrics().Scored(got)
	var piece func(id token.ID) string
	if q.TokenLogprobs {
		piece = func(id token.ID) string { text, _ := open.Piece(id); return text }
	}
	u := tokenCounts{PromptTokens: prompts + tokens, TotalTokens: prompts + tokens}
	u.Details.Cached = got.ReusedTokens
	best := score.BestPlaces(got.Continuations)
	return x.Reply(answerOf(x, open, scoredOf(got.Continuations, piece), &best, u))
}

// scored is an entry in the form that vLLM's clients read.
type scored struct {
	Object string  `json:"object"`
	Score  float64 `json:"score"` // the log-probability
	score.Entry
}

func scoredOf(all []grove.Continuation, piece func(id token.ID) string) []scored {
	out := make([]scored, len(all))
	for i, e := range score.Entries(all, piece) {
		out[i] = scored{"score", e.Logprob, e}
	}
	return out
}

// blame names the field that an error of the library is of.
func blame(err error) error {
	e := new(score.Error)
	if !errors.As(err, &e) {
		return wire.RefusalOf(err)
	}
	refusal := *wire.RefusalOf(err)
	refusal.Param = e.Part
	return &refusal
}

// tokenCounts are the tokens that a request took. Continuations are read like prompts: all are prompt tokens.
type tokenCounts struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	Details          struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// scoreAnswer is the answer of /v1/score.
type scoreAnswer struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Data    any           `json:"data"`
	Best    *score.Places `json:"best,omitempty"` // place of the best continuation by each normalisation
	Usage   tokenCounts   `json:"usage"`
}

func answerOf(x *driver.Request, open *serving.OpenModel, data any, best *score.Places, u tokenCounts) scoreAnswer {
	return scoreAnswer{"score-" + x.ID, "list", time.Now().Unix(), open.Name, data, best, u}
}
