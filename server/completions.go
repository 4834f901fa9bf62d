package server

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"grove"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/token"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	wire.Sampling

	Model         string              `json:"model"`
	Prompt        wire.Prompts        `json:"prompt"`
	Suffix        *string             `json:"suffix"`
	MaxTokens     *int                `json:"max_tokens"`
	MaxCompletion *int                `json:"max_completion_tokens"`
	Predict       *int                `json:"n_predict"` // llama.cpp's; -1: no bound
	N             *int                `json:"n"`
	BestOf        *int                `json:"best_of"`
	Echo          bool                `json:"echo"`
	Logprobs      *int                `json:"logprobs"`
	Stream        bool                `json:"stream"`
	StreamOptions *wire.StreamOptions `json:"stream_options"`
	Format        *wire.Format        `json:"response_format"`
	Prediction    *wire.Prediction    `json:"prediction"`
}

const defaultMaxTokens = 16 // OpenAI's

// completion is a text under way.
type completion struct {
	*completionRequest
	x         *exchange
	host      *serving.Host
	job       *serving.Job // nil: nothing is to be generated
	n         int
	most      int // tokens of an answer
	created   int64
	prompts   []wire.Prompt
	predicted []token.ID
	choices   []completionChoice
	stops     []token.ID
}

// completionChoice is one answer.
type completionChoice struct {
	text     strings.Builder
	logprobs *completionLogprobs
	ids      []token.ID
	runes    int // where the next token's text begins
	partial  []byte
	timings  *serving.Timings // up to its last token; nil: not asked for
}

// completionLogprobs is what /v1/completions tells of tokens. A token that is not whole characters is written as
// bytes:\x..., as OpenAI does.
type completionLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Token   []*float32           `json:"token_logprobs"`
	Top     []map[string]float32 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
}

// completions handles POST /v1/completions.
func (s *Server) completions(x *exchange) error {
	q := new(completionRequest)
	if err := s.read(x, q); err != nil {
		return err
	}
	h, err := x.host(q.Model)
	if err != nil {
		return err
	}
	c := &completion{completionRequest: q, x: x, host: h, n: 1, created: unix()}
	requests, err := c.requests()
	if err != nil {
		return err
	}
	if c.most > 0 {
		if c.job, err = h.Prepare(x.r.Context(), order(x, &q.Sampling, requests, c.n, q.Stream)); err != nil {
			return err
		}
		defer c.job.Close()
	} else if err := c.noJob(requests); err != nil {
		return err
	}
	c.choices = make([]completionChoice, len(c.prompts)*c.n)
	if c.Echo {
		if err := c.echo(s, requests); err != nil {
			return err
		}
	}
	if c.Stream {
		return c.stream(s)
	}
	if c.job != nil {
		if err := c.job.Run(func(e serving.Event) error { c.take(e); return nil }); err != nil {
			return err
		}
	}
	return x.reply(c.whole())
}

// requests checks the fields and returns what is to be generated for each prompt.
func (c *completion) requests() ([]grove.Request, error) {
	q := c.completionRequest
	wire.Set(&c.n, q.N)
	switch {
	case !q.Prompt.Given:
		return nil, wire.Refuse("prompt", "prompt is missing")
	case q.BestOf != nil && *q.BestOf != c.n:
		return nil, wire.Unsupported("best_of", "it must be equal to n: there is no search")
	case q.Logprobs != nil && (*q.Logprobs < 0 || *q.Logprobs > wire.MaxTop):
		return nil, wire.Refuse("logprobs", "logprobs is %d; it must be from 0 to %d", *q.Logprobs, wire.MaxTop)
	case q.Echo && q.Suffix != nil:
		return nil, wire.Refuse("echo", "echo and suffix cannot be combined")
	}
	var err error
	if c.most, err = q.most(c.host.Info.Context); err != nil {
		return nil, err
	}
	if err := q.StreamOptions.Check(q.Stream); err != nil {
		return nil, err
	}
	if err := q.Format.Check("response_format"); err != nil {
		return nil, err
	}
	base, err := q.Request(c.host.Model, wire.DefaultsOpenAI)
	if err != nil {
		return nil, err
	}
	if err := q.Prediction.Apply(&base); err != nil {
		return nil, err
	}
	if c.predicted, err = c.host.Model.Tokenize(base.Prediction, false, false); err != nil {
		return nil, err
	}
	base.MaxTokens, base.Suffix = c.most, q.Suffix
	if q.Logprobs != nil {
		base.Top = *q.Logprobs
	}
	c.stops = base.StopTokens
	var all []grove.Request
	for _, raw := range q.Prompt.List {
		p, err := raw.Resolve(c.host.Model)
		if err != nil {
			return nil, err
		}
		if p.IDs != nil && q.Suffix != nil {
			return nil, wire.Refuse("suffix", "suffix wants a prompt of text")
		}
		r := base
		r.Prompt, r.PromptIDs = p.Text, p.IDs
		c.prompts, all = append(c.prompts, p), append(all, r)
	}
	return all, nil
}

// most returns how many tokens an answer may have, those of a context where it is told to have no bound.
func (q *completionRequest) most(context int) (int, error) {
	most := -1
	for _, f := range []struct {
		name string
		v    *int
	}{{"max_tokens", q.MaxTokens}, {"max_completion_tokens", q.MaxCompletion}, {"n_predict", q.Predict}} {
		if f.v == nil {
			continue
		}
		v := *f.v
		if v == -1 && f.v == q.Predict {
			v = context
		}
		switch {
		case v < 0:
			return 0, wire.Refuse(f.name, "%s is %d; it must be 0 or more", f.name, v)
		case most >= 0 && most != v:
			return 0, wire.Refuse(f.name, "%s is %d and differs from %d, another name's", f.name, v, most)
		}
		most = v
	}
	if most < 0 {
		most = defaultMaxTokens
	}
	return most, nil
}

// noJob checks requests of which nothing is generated, as the library would.
func (c *completion) noJob(requests []grove.Request) error {
	if c.Session != "" {
		return wire.Refuse("session", "session: with max_tokens 0 nothing is generated that could be kept")
	}
	if len(requests) == 0 || c.n < 1 || c.n > wire.MaxChoices || c.n*len(requests) > wire.MaxAnswers {
		return wire.Refuse("n", "%d prompts with %d answers each; at most %d answers", len(requests), c.n, wire.MaxAnswers)
	}
	for _, r := range requests {
		if _, err := c.host.Model.Generate(c.x.r.Context(), r); err != nil {
			return wire.RefusalOf(err)
		}
	}
	return nil
}

// echo puts the prompts before the answers, with the log-probabilities of their tokens where these are asked for.
func (c *completion) echo(s *Server, requests []grove.Request) error {
	for p, r := range requests {
		text, ids := r.Prompt, r.PromptIDs
		var err error
		if ids == nil {
			ids, err = c.host.Model.Tokenize(text, true, false)
		} else {
			text, err = c.host.Model.Detokenize(ids)
		}
		if err != nil {
			return err
		}
		first := &c.choices[p*c.n]
		if c.Logprobs != nil {
			first.logprobs = newCompletionLogprobs()
			if err := c.promptLogprobs(s, first, ids); err != nil {
				return err
			}
		}
		for i := range c.n {
			a := &c.choices[p*c.n+i]
			a.text.WriteString(text)
			if i > 0 && first.logprobs != nil {
				a.logprobs, a.runes = first.logprobs.clone(), first.runes
			}
		}
	}
	return nil
}

// promptLogprobs computes how likely the model finds the tokens of a prompt, each behind those before it.
func (c *completion) promptLogprobs(s *Server, a *completionChoice, ids []token.ID) error {
	for i, id := range ids {
		if i == 0 {
			a.add(c.host, id, nil, nil)
		}
	}
	if len(ids) < 2 {
		return nil
	}
	return c.host.Compute(c.x.r.Context(), c.x.id, func(ctx context.Context) error {
		i := 0
		return c.host.Model.Logprobs(ctx, ids[:len(ids)-1], func(row grove.LogprobRow) error {
			i++
			logprob := row.Of(ids[i])
			top, err := row.Top(*c.Logprobs)
			if err != nil {
				return err
			}
			a.add(c.host, ids[i], &logprob, top)
			return nil
		})
	})
}

func newCompletionLogprobs() *completionLogprobs {
	return &completionLogprobs{Tokens: []string{}, Token: []*float32{}, Top: []map[string]float32{}, Offsets: []int{}}
}

func (l *completionLogprobs) clone() *completionLogprobs {
	return &completionLogprobs{
		append([]string{}, l.Tokens...), append([]*float32{}, l.Token...), append([]map[string]float32{}, l.Top...), append([]int{}, l.Offsets...),
	}
}

// add notes a token; logprob is nil for the first of a text, which nothing foretells.
func (a *completionChoice) add(h *serving.Host, id token.ID, logprob *float32, top []grove.Likely) {
	l := a.logprobs
	text, raw := asBytes(h, id)
	l.Tokens = append(l.Tokens, text)
	l.Token = append(l.Token, logprob)
	l.Offsets = append(l.Offsets, a.runes)
	var all map[string]float32
	if logprob != nil {
		all = make(map[string]float32, len(top)+1)
		for _, t := range append(top[:len(top):len(top)], grove.Likely{ID: id, Logprob: *logprob}) {
			name, _ := asBytes(h, t.ID)
			if _, has := all[name]; !has {
				all[name] = t.Logprob
			}
		}
	}
	l.Top = append(l.Top, all)
	a.partial = append(a.partial, raw...)
	for len(a.partial) > 0 && utf8.FullRune(a.partial) {
		_, n := utf8.DecodeRune(a.partial)
		a.partial = a.partial[n:]
		a.runes++
	}
}

// asBytes returns a token as /v1/completions writes it.
func asBytes(h *serving.Host, id token.ID) (string, []byte) {
	text, raw := h.Piece(id)
	if text == string(raw) {
		return text, raw
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, v := range raw {
		fmt.Fprintf(&b, `\x%02x`, v)
	}
	return b.String(), raw
}

// take adds news to an answer.
func (c *completion) take(e serving.Event) {
	if e.Answer < 0 || e.Done {
		return
	}
	a := &c.choices[e.Answer]
	a.text.WriteString(e.Token.Text)
	if e.Token.ID == token.None {
		return
	}
	a.ids = append(a.ids, e.Token.ID)
	if c.Logprobs != nil {
		if a.logprobs == nil {
			a.logprobs = newCompletionLogprobs()
		}
		a.add(c.host, e.Token.ID, &e.Token.Logprob, e.Token.Top)
	}
}

// completionBody is an answer of /v1/completions, whole or a part.
type completionBody = envelope[completionPart]

type completionPart struct {
	Index      int                 `json:"index"`
	Text       string              `json:"text"`
	Logprobs   *completionLogprobs `json:"logprobs"`
	Finish     *string             `json:"finish_reason"`
	StopReason any                 `json:"stop_reason"`
}

func (c *completion) body() completionBody {
	return completionBody{
		ID: "cmpl-" + c.x.id, Object: "text_completion", Created: c.created, Model: c.host.Name, System: fingerprint, Choices: []completionPart{},
	}
}

// end returns why an answer ended.
func (c *completion) end(i int) (*string, any) {
	if c.job == nil {
		length := string(grove.FinishLength)
		return &length, nil
	}
	s := c.job.Answers[i].Stats()
	why := serving.Reason(s.Finish)
	return &why, serving.StopReason(s, c.stops)
}

// spent returns what the request took.
func (c *completion) spent() (u serving.Usage, t *serving.Timings) {
	if c.job == nil {
		for _, p := range c.prompts {
			n := len(p.IDs)
			if p.IDs == nil {
				ids, _ := c.host.Model.Tokenize(p.Text, true, false) // it was tokenized before
				n = len(ids)
			}
			u.PromptTokens += n
		}
		u.TotalTokens = u.PromptTokens
		return u, nil
	}
	ids := make([][]token.ID, len(c.choices))
	for i := range c.choices {
		ids[i] = c.choices[i].ids
	}
	all := c.job.Timings()
	return c.job.Usage(ids, c.predicted), &all
}

// whole returns the answer of a request that does not stream.
func (c *completion) whole() completionBody {
	b := c.body()
	for i := range c.choices {
		a := &c.choices[i]
		p := completionPart{Index: i, Text: a.text.String(), Logprobs: a.logprobs}
		p.Finish, p.StopReason = c.end(i)
		b.Choices = append(b.Choices, p)
	}
	u, t := c.spent()
	b.Usage, b.Timings = &u, t
	return b
}

// stream sends answers as they come.
func (c *completion) stream(s *Server) error {
	out := c.x.stream()
	part := func(i int, finish *string, why any) error {
		a := &c.choices[i]
		b := c.body()
		b.Timings = a.timings
		b.Choices = []completionPart{{Index: i, Text: a.text.String(), Logprobs: a.logprobs, Finish: finish, StopReason: why}}
		a.text.Reset()
		a.logprobs = nil
		return out.send(b.part(c.StreamOptions))
	}
	if c.Echo {
		for i := range c.choices {
			if err := part(i, nil, nil); err != nil {
				return err
			}
		}
	}
	finish := func(i int) error {
		why, stop := c.end(i)
		return part(i, why, stop)
	}
	if c.job == nil {
		for i := range c.choices {
			if err := finish(i); err != nil {
				return err
			}
		}
	} else if err := c.job.Run(func(e serving.Event) error {
		if e.Answer < 0 {
			return out.alive()
		}
		c.take(e)
		a := &c.choices[e.Answer]
		if e.Timings != nil {
			a.timings = e.Timings
		}
		switch {
		case e.Done:
			return finish(e.Answer)
		case a.text.Len() == 0 && a.logprobs == nil && e.Timings == nil:
			return nil
		}
		return part(e.Answer, nil, nil)
	}); err != nil {
		return out.fail(err)
	}
	u, t := c.spent()
	if c.StreamOptions != nil && c.StreamOptions.IncludeUsage {
		b := c.body()
		b.Usage, b.Timings = &u, t
		if err := out.send(b); err != nil {
			return err
		}
	}
	return out.done()
}
