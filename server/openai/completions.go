package openai

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"grove"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/token"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	driver.Fields
	driver.Limits

	Prompt        wire.Prompts        `json:"prompt" most:"1024"`
	Suffix        *string             `json:"suffix"`
	N             *int                `json:"n" range:"1 128"`
	BestOf        *int                `json:"best_of" range:"1 128"`
	Echo          bool                `json:"echo"`
	Logprobs      *int                `json:"logprobs" range:"0 20"`
	StreamOptions *wire.StreamOptions `json:"stream_options"`
	Format        *wire.Format        `json:"response_format"`
}

const defaultMaxTokens = 16 // OpenAI's

// Tolerated implements [wire.Tolerant].
func (completionRequest) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "add_special_tokens", Values: "true", Reason: "a text begins with the model's special tokens; give token ids for another beginning"}}
}

// Parse implements [driver.Body].
func (q *completionRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	wire.Set(&g.N, q.N)
	switch {
	case !q.Prompt.Given:
		return nil, wire.Refuse("prompt", "prompt is missing")
	case q.BestOf != nil && *q.BestOf != g.N:
		return nil, wire.Unsupported("best_of", "it must be equal to n; search computes several answers and chooses one")
	case q.Echo && q.Suffix != nil:
		return nil, wire.Refuse("echo", "echo and suffix cannot be combined")
	}
	most, err := q.Most(0, g.Host.Info.Context, defaultMaxTokens)
	if err != nil {
		return nil, err
	}
	if g.Scores = most == 0; g.Scores && q.Session != "" {
		return nil, wire.Refuse("session", "session: with max_tokens 0 nothing is generated that could be kept")
	}
	if g.Scores && q.Search != "" {
		return nil, wire.Refuse("search", "search: with max_tokens 0 nothing is generated that could be searched")
	}
	if err := q.StreamOptions.Check(q.Stream); err != nil {
		return nil, err
	}
	if err := q.Format.Check("response_format"); err != nil {
		return nil, err
	}
	base, err := g.Base(wire.DefaultsOpenAI)
	if err != nil {
		return nil, err
	}
	base.MaxTokens, base.Suffix = most, q.Suffix
	wire.Set(&base.Top, q.Logprobs)
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
	text     strings.Builder
	logprobs *completionLogprobs
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
}

// Begin implements [driver.Encoder]. It puts the prompts before the answers where the request asks for that.
func (e *completionEncoder) Begin() error {
	e.answers = make([]completionAnswer, len(e.Job.Answers))
	if !e.echo {
		return nil
	}
	for p, r := range e.Prompts {
		if err := e.addPrompt(e.answers[p*e.N:][:e.N], r); err != nil {
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
		a.add(e.Host, t.ID, &t.Logprob, t.Top)
	}
	if e.Out == nil || a.text.Len() == 0 && a.logprobs == nil && so == nil {
		return nil
	}
	if so != nil {
		a.so = so
	}
	return e.sendPart(answer, nil, nil)
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
	c := completionChoice{Index: answer, Text: a.text.String(), Logprobs: a.logprobs, Finish: why, StopReason: stop}
	a.text.Reset()
	a.logprobs = nil
	return e.send(c, a.so)
}

// Finish implements [driver.Encoder].
func (e *completionEncoder) Finish() error {
	if e.Out != nil {
		return e.done()
	}
	all := make([]any, len(e.answers))
	for i := range e.answers {
		a := &e.answers[i]
		why, stop := e.Ended(i)
		all[i] = completionChoice{Index: i, Text: a.text.String(), Logprobs: a.logprobs, Finish: &why, StopReason: stop}
	}
	return e.whole(all)
}

// addPrompt puts a prompt before its answers, with the log-probabilities of its tokens where the request asks for them.
func (e *completionEncoder) addPrompt(answers []completionAnswer, r grove.Request) error {
	text, ids := r.Prompt, r.PromptIDs
	var err error
	if ids == nil {
		ids, err = e.Host.Model.Tokenize(text, true, false)
	} else {
		text, err = e.Host.Model.Detokenize(ids)
	}
	if err != nil {
		return err
	}
	first := &answers[0]
	if e.logprobs && len(ids) > 0 {
		first.add(e.Host, ids[0], nil, nil)
		if err := e.score(first, ids); err != nil {
			return err
		}
	}
	for i := range answers {
		answers[i].text.WriteString(text)
		if first.logprobs != nil && i > 0 {
			answers[i].logprobs, answers[i].runes = first.logprobs.clone(), first.runes
		}
	}
	return nil
}

// score adds the log-probabilities of all tokens but the first, each behind those before it.
func (e *completionEncoder) score(a *completionAnswer, ids []token.ID) error {
	if len(ids) < 2 {
		return nil
	}
	return e.Host.Compute(e.R.Context(), e.ID, func(ctx context.Context) error {
		i := 0
		return e.Host.Model.Logprobs(ctx, ids[:len(ids)-1], func(row grove.LogprobRow) error {
			i++
			logprob := row.Of(ids[i])
			top, err := row.Top(e.top)
			if err != nil {
				return err
			}
			a.add(e.Host, ids[i], &logprob, top)
			return nil
		})
	})
}

// completionLogprobs are the log-probabilities of tokens. A token that is not whole characters is written as bytes:\x..., as
// OpenAI does.
type completionLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Token   []*float32           `json:"token_logprobs"`
	Top     []map[string]float32 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
}

func (l *completionLogprobs) clone() *completionLogprobs {
	return &completionLogprobs{slices.Clone(l.Tokens), slices.Clone(l.Token), slices.Clone(l.Top), slices.Clone(l.Offsets)}
}

// add adds a token; logprob is nil for the first token of a text, which has no probability.
func (a *completionAnswer) add(h *serving.Host, id token.ID, logprob *float32, top []grove.Likely) {
	if a.logprobs == nil {
		a.logprobs = new(completionLogprobs)
	}
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

// asBytes returns a token as /v1/completions writes it, and its bytes.
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
