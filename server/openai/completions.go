package openai

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"grove"
	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/structured"
	"grove/server/wire"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	driver.Fields
	driver.Limits
	wire.Searches

	Prompt        wire.Prompts        `json:"prompt" most:"1024"`
	Suffix        *string             `json:"suffix"`
	PrefixLM      bool                `json:"prefix_lm"` // the tokens of the prompt see each other
	N             *int                `json:"n" range:"1 128"`
	Echo          bool                `json:"echo"`
	Logprobs      *int                `json:"logprobs" range:"0 20"`
	StreamOptions *wire.StreamOptions `json:"stream_options"`
	Format        *structured.Format  `json:"response_format"`
}

const defaultMaxTokens = 16 // OpenAI's

// Tolerated implements [wire.Tolerant].
func (completionRequest) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "add_special_tokens", Values: "true", Client: "vLLM", Reason: "a text begins with the model's special tokens; give token ids for another beginning"}}
}

// Parse implements [driver.Body].
func (q *completionRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	wire.Set(&g.N, q.N)
	switch {
	case !q.Prompt.Given:
		return nil, wire.Refuse("prompt", "prompt is missing")
	case q.Echo && q.Suffix != nil:
		return nil, wire.Refuse("echo", "echo and suffix cannot be combined")
	}
	if err := driver.CheckPrefix(q.PrefixLM, q.Session); err != nil {
		return nil, err
	}
	most, err := q.Max(0, g.Model.Info.Context, defaultMaxTokens)
	if err != nil {
		return nil, err
	}
	if g.Scores = most == 0; g.Scores && q.Session != "" {
		return nil, wire.Refuse("session", "session: with max_tokens 0 nothing is generated that could be kept")
	}
	if g.Scores && q.PrefixLM {
		return nil, wire.Refuse("prefix_lm", "prefix_lm: with max_tokens 0 the prompt is scored, whose tokens see what is before them")
	}
	base, err := g.Base(wire.DefaultsOpenAI)
	if err != nil {
		return nil, err
	}
	if err := q.Apply(&base, g.N); err != nil {
		return nil, err
	}
	if g.Scores && base.Search != "" {
		return nil, wire.Refuse("search", "search: with max_tokens 0 nothing is generated that could be searched")
	}
	base.MaxTokens, base.Suffix, base.Prefix = most, q.Suffix, q.PrefixLM
	if wire.Set(&base.Top, q.Logprobs); q.Logprobs != nil {
		g.LogprobsField = "logprobs"
	}
	format, err := q.Format.Asks("response_format")
	if err := g.Constrain(&base, format, err, nil); err != nil {
		return nil, err
	}
	if err := g.AddPrompts(base, q.Prompt.List); err != nil {
		return nil, err
	}
	return &completionEncoder{
		openAI: openAI{Generation: g, answerID: "cmpl-" + g.ID, object: "text_completion", part: "text_completion", options: q.StreamOptions},
		echo:   q.Echo, logprobs: q.Logprobs != nil, top: base.Top,
	}, nil
}

// completionEncoder writes the answers of /v1/completions.
type completionEncoder struct {
	openAI
	echo     bool
	logprobs bool
	top      int // likely tokens beside each
	answers  []completionAnswer
}

// completionAnswer is an answer, or in a stream the part of it that is not sent yet.
type completionAnswer struct {
	prompt   string // that is put before the text
	text     strings.Builder
	logprobs []offsetScored
	runes    int    // where the next token's text begins
	partial  []byte // of a rune
	so       *serving.Timings
}

// completionChoice is an answer, whole or a part.
type completionChoice struct {
	Index      int                 `json:"index"`
	Text       string              `json:"text"`
	Logprobs   *completionLogprobs `json:"logprobs"`
	Finish     *string             `json:"finish_reason"`
	StopReason any                 `json:"stop_reason"`
	Canvas     []any               `json:"canvas,omitempty"` // of a diffusion model
}

// Begin implements [driver.Encoder]. It puts the prompts before the answers where the request asks for that.
func (e *completionEncoder) Begin() error {
	e.answers = make([]completionAnswer, len(e.Job.Answers))
	if !e.echo {
		return nil
	}
	for p, r := range e.Prompts {
		if err := e.addPrompt(e.answers[p*e.N:][:e.N], r, e.Job.Answers[p*e.N].Prompt()); err != nil {
			return err
		}
	}
	for i := range e.answers {
		if e.Out == nil {
			break
		}
		if err := e.sendPart(i, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Token implements [driver.Encoder].
func (e *completionEncoder) Token(answer int, t grove.Token, so *serving.Timings) error {
	a := &e.answers[answer]
	a.text.WriteString(t.Text)
	if t.ID != token.None && e.logprobs {
		if err := a.add(e.Generation, t, false); err != nil {
			return err
		}
	}
	if e.Out == nil || a.text.Len() == 0 && a.logprobs == nil && so == nil {
		return nil
	}
	if so != nil {
		a.so = so
	}
	return e.sendPart(answer, nil, nil)
}

// Canvas implements [driver.CanvasEncoder].
func (e *completionEncoder) Canvas(answer int, runs []any) error {
	return e.send(completionChoice{Index: answer, Canvas: runs}, nil)
}

// End implements [driver.Encoder].
func (e *completionEncoder) End(answer int) error {
	if e.Out == nil {
		return nil
	}
	why, stop := e.Ended(answer)
	return e.sendPart(answer, &why, stop)
}

// sendPart sends the part of an answer that is not sent yet.
func (e *completionEncoder) sendPart(answer int, why *string, stop any) error {
	a := &e.answers[answer]
	c := e.choice(answer)
	c.Finish, c.StopReason = why, stop
	a.text.Reset()
	a.prompt, a.logprobs = "", nil
	return e.send(c, a.so)
}

// Finish implements [driver.Encoder].
func (e *completionEncoder) Finish() error {
	if e.Out != nil {
		return e.done()
	}
	return e.whole(func(i int) (any, error) {
		c := e.choice(i)
		why, stop := e.Ended(i)
		c.Finish, c.StopReason = &why, stop
		return c, nil
	})
}

// choice returns an answer, or the part of it that is not sent yet.
func (e *completionEncoder) choice(i int) completionChoice {
	a := &e.answers[i]
	c := completionChoice{Index: i, Text: a.prompt + a.text.String()}
	if len(a.logprobs) > 0 {
		c.Logprobs = completionLogprobsOf(e.Model, a.logprobs)
	}
	return c
}

// addPrompt puts a prompt of these tokens before its answers, with the log-probabilities of its tokens where the request asks for them.
func (e *completionEncoder) addPrompt(answers []completionAnswer, r grove.Request, ids []token.ID) (err error) {
	text := r.Prompt
	if r.PromptIDs != nil {
		if text, err = e.Model.Model.Detokenize(ids); err != nil {
			return err
		}
	}
	first := &answers[0]
	if e.logprobs && len(ids) > 0 {
		if err := first.add(e.Generation, grove.Token{ID: ids[0]}, true); err != nil {
			return err
		}
		if err := e.score(first, ids); err != nil {
			return err
		}
	}
	for i := range answers {
		if answers[i].prompt = text; i > 0 {
			answers[i].logprobs, answers[i].runes = slices.Clip(first.logprobs), first.runes // shared: what is added is added to a copy
			if err := e.Count(len(first.logprobs), 0); err != nil {                          // the likely ones are shared
				return err
			}
		}
	}
	return nil
}

// score adds the log-probabilities of all tokens but the first, each behind those before it.
func (e *completionEncoder) score(a *completionAnswer, ids []token.ID) error {
	if len(ids) < 2 {
		return nil
	}
	return e.Model.Compute(e.R.Context(), e.ID, func(ctx context.Context) error {
		i := 0
		return e.Model.Model.Logprobs(ctx, ids[:len(ids)-1], func(row grove.LogprobRow) error {
			i++
			logprob := row.Of(ids[i])
			top, err := row.Top(e.top)
			if err != nil {
				return err
			}
			return a.add(e.Generation, grove.Token{ID: ids[i], Logprob: logprob, Top: top}, false)
		})
	})
}

// offsetScored is a token with the place where its text begins, in characters.
type offsetScored struct {
	driver.Scored
	offset int
	first  bool // of its text: it has no probability
}

// completionLogprobs are the log-probabilities of tokens, made while they are written. A token that is not whole characters is written
// as bytes:\x..., as OpenAI does.
type completionLogprobs struct {
	Tokens  *wire.Sequence `json:"tokens"`
	Token   *wire.Sequence `json:"token_logprobs"`
	Top     *wire.Sequence `json:"top_logprobs"`
	Offsets *wire.Sequence `json:"text_offset"`
}

func completionLogprobsOf(h *serving.OpenModel, all []offsetScored) *completionLogprobs {
	each := func(of func(t *offsetScored) any) *wire.Sequence {
		return wire.Each(len(all), func(i int) (any, error) { return of(&all[i]), nil })
	}
	name := func(id token.ID) string {
		text, _ := asBytes(h, id)
		return text
	}
	return &completionLogprobs{
		Tokens:  each(func(t *offsetScored) any { return name(t.ID) }),
		Offsets: each(func(t *offsetScored) any { return t.offset }),
		Token: each(func(t *offsetScored) any {
			if t.first {
				return nil
			}
			return t.Logprob
		}),
		Top: each(func(t *offsetScored) any {
			if t.first {
				return nil
			}
			likely := make(map[string]float32, len(t.Top)+1)
			for _, l := range append(t.Top[:len(t.Top):len(t.Top)], grove.TopLogprob{ID: t.ID, Logprob: t.Logprob}) {
				text := name(l.ID)
				if _, has := likely[text]; !has {
					likely[text] = l.Logprob
				}
			}
			return likely
		}),
	}
}

// add adds a token; the first of a text has no probability.
func (a *completionAnswer) add(g *driver.Generation, t grove.Token, first bool) error {
	s, err := g.Keep(t)
	a.logprobs = append(a.logprobs, offsetScored{s, a.runes, first})
	_, raw := asBytes(g.Model, t.ID)
	a.partial = append(a.partial, raw...)
	for len(a.partial) > 0 && utf8.FullRune(a.partial) {
		_, n := utf8.DecodeRune(a.partial)
		a.partial = a.partial[n:]
		a.runes++
	}
	return err
}

// asBytes returns a token as /v1/completions writes it, and its bytes.
func asBytes(h *serving.OpenModel, id token.ID) (string, []byte) {
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
