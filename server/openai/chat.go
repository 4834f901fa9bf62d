package openai

import (
	"strconv"

	"grove"
	"grove/internal/text/answer"
	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/structured"
	"grove/server/wire"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	driver.Fields
	driver.Limits
	wire.Searches
	conversation

	N             *int                `json:"n" range:"1 128"`
	Logprobs      bool                `json:"logprobs"`
	TopLogprobs   *int                `json:"top_logprobs" range:"0 20"`
	StreamOptions *wire.StreamOptions `json:"stream_options"`
	Format        *structured.Format  `json:"response_format"`
}

// Tolerated implements [wire.Tolerant].
func (chatRequest) Tolerated() []wire.Toleration { return chatFields }

// chatFields are fields of completions that chats do not have.
var chatFields = []wire.Toleration{
	{Names: "echo add_special_tokens", Values: "false", Client: "vLLM", Reason: "the prompt is the template's"},
	{Names: "suffix", Client: "OpenAI", Reason: "the prompt is the template's"},
}

// Parse implements [driver.Body].
func (q *chatRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	g.FieldNames = map[string]string{"prompt": "messages"}
	c, err := q.prompt(g)
	if err != nil {
		return nil, err
	}
	return &chatEncoder{
		openAI: openAI{Generation: g, answerID: "chatcmpl-" + g.ID, object: "chat.completion", part: "chat.completion.chunk", options: q.StreamOptions},
		chat:   c, logprobs: q.Logprobs,
	}, nil
}

// prompt checks the fields, adds the prompt of the conversation, and returns the conversation.
func (q *chatRequest) prompt(g *driver.Generation) (c driver.Chat, err error) {
	if c, err = q.chat(); err != nil {
		return c, err
	}
	wire.Set(&g.N, q.N)
	top := 0
	wire.Set(&top, q.TopLogprobs)
	if top > 0 && !q.Logprobs {
		return c, wire.Refuse("top_logprobs", "top_logprobs needs logprobs to be true")
	}
	r, err := g.Base(wire.DefaultsOpenAI)
	if err == nil {
		err = q.Apply(&r, g.N)
	}
	if err != nil {
		return c, err
	}
	if r.MaxTokens, err = q.Max(1, 0, r.MaxTokens); err != nil {
		return c, err
	}
	if r.Top = top; q.Logprobs {
		g.LogprobsField = "top_logprobs"
	}
	format, err := q.Format.Asks("response_format")
	err = g.Ask(r, &c, format, err)
	return c, err
}

// chatEncoder writes the answers of /v1/chat/completions.
type chatEncoder struct {
	openAI
	chat     driver.Chat
	logprobs bool
	answers  []chatAnswer
}

// chatChoice is an answer, whole.
type chatChoice struct {
	Index      int           `json:"index"`
	Message    answerMessage `json:"message"`
	Logprobs   *chatLogprobs `json:"logprobs"`
	Finish     *string       `json:"finish_reason"`
	StopReason any           `json:"stop_reason"`
}

// answerMessage is a message of the assistant; its content is null where it has calls and no text.
type answerMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Thoughts  string     `json:"reasoning,omitempty"` // the same, as vLLM and OpenRouter call it
	Refusal   *string    `json:"refusal"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

// chatPart is a part of an answer.
type chatPart struct {
	Index      int           `json:"index"`
	Delta      chatDelta     `json:"delta"`
	Logprobs   *chatLogprobs `json:"logprobs"`
	Finish     *string       `json:"finish_reason"`
	StopReason any           `json:"stop_reason,omitempty"`
	Canvas     []any         `json:"canvas,omitempty"` // of a diffusion model
}

// chatDelta is what a part adds to a message.
type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Thoughts  string     `json:"reasoning,omitempty"` // the same, as vLLM and OpenRouter call it
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

// Begin implements [driver.Encoder].
func (e *chatEncoder) Begin() error {
	e.answers = make([]chatAnswer, len(e.Job.Answers))
	for i := range e.answers {
		e.answers[i].Answer = e.chat.Answer(e.Generation, strconv.Itoa(i))
	}
	return nil
}

// Token implements [driver.Encoder].
func (e *chatEncoder) Token(answer int, t grove.Token, so *serving.Timings) error {
	a := &e.answers[answer]
	if e.logprobs && t.ID != token.None {
		s, err := e.Keep(t)
		if err != nil {
			return err
		}
		a.logprobs = append(a.logprobs, s)
	}
	return e.sendNew(answer, a.Add(t), so)
}

// Canvas implements [driver.CanvasEncoder].
func (e *chatEncoder) Canvas(answer int, runs []any) error {
	if err := e.sendNew(answer, nil, nil); err != nil { // the role
		return err
	}
	return e.send(chatPart{Index: answer, Canvas: runs}, nil)
}

// End implements [driver.Encoder].
func (e *chatEncoder) End(answer int) error {
	why, _ := e.Ended(answer)
	if err := e.sendNew(answer, e.answers[answer].Close(why), nil); err != nil || e.Out == nil {
		return err
	}
	p := chatPart{Index: answer}
	p.Finish, p.StopReason = e.why(answer)
	return e.send(p, e.answers[answer].so)
}

// Finish implements [driver.Encoder].
func (e *chatEncoder) Finish() error {
	if e.Out != nil {
		return e.done()
	}
	return e.whole(func(i int) (any, error) {
		a := &e.answers[i]
		c := chatChoice{Index: i, Message: a.message()}
		if e.logprobs {
			c.Logprobs = &chatLogprobs{Content: logprobsOf(e.Model, a.logprobs)}
		}
		c.Finish, c.StopReason = e.why(i)
		return c, nil
	})
}

// why returns why an answer ended.
func (e *chatEncoder) why(answer int) (*string, any) {
	why, stop := e.Ended(answer)
	if why == string(grove.FinishStop) && len(e.answers[answer].Calls) > 0 {
		why = "tool_calls"
	}
	return &why, stop
}

// sendNew sends the new parts of an answer: the role first; of a call the name and then the arguments. The log-probabilities of a
// token, and its timings, are with its first part, or with no text.
func (e *chatEncoder) sendNew(number int, parts []answer.Part, so *serving.Timings) error {
	if e.Out == nil {
		return nil
	}
	a := &e.answers[number]
	var all []chatDelta
	if !a.begun {
		a.begun = true
		if err := e.send(chatPart{Index: number, Delta: chatDelta{Role: "assistant", Content: new(string)}}, nil); err != nil {
			return err
		}
	}
	if so != nil {
		a.so = so
	}
	if len(parts) == 0 || parts[0].Kind >= answer.CallPart {
		if len(a.logprobs) > 0 || so != nil {
			all = append(all, chatDelta{Content: new(string)})
		}
	}
	for _, p := range parts {
		switch p.Kind {
		case answer.CallBegin:
			all = append(all, callDelta(a.sent, toolCallOf(*p.Call)))
			a.sent++
		case answer.CallText:
			all = append(all, callDelta(a.sent-1, toolCall{Function: function{Arguments: p.Text}}))
		case answer.CallPart:
		case answer.Reasoning:
			all = append(all, chatDelta{Reasoning: p.Text, Thoughts: p.Text})
		default:
			all = append(all, chatDelta{Content: &p.Text})
		}
	}
	for _, d := range all {
		p := chatPart{Index: number, Delta: d}
		if len(a.logprobs) > 0 {
			p.Logprobs, a.logprobs = &chatLogprobs{Content: logprobsOf(e.Model, a.logprobs)}, nil
		}
		if err := e.send(p, a.so); err != nil {
			return err
		}
	}
	return nil
}

// callDelta returns what a part adds to a call.
func callDelta(at int, c toolCall) chatDelta {
	c.Index = &at
	return chatDelta{Calls: []toolCall{c}}
}

// chatAnswer is the message of an answer under way.
type chatAnswer struct {
	*driver.Answer
	logprobs []driver.Scored  // in a stream: those that are not sent yet
	begun    bool             // its first part is sent
	sent     int              // calls
	so       *serving.Timings // up to its last token; nil: not asked for
}

// message returns the answer as a message.
func (a *chatAnswer) message() answerMessage {
	m := answerMessage{Role: "assistant", Reasoning: a.Reasoning.String(), Thoughts: a.Reasoning.String()}
	for _, c := range a.Calls {
		m.Calls = append(m.Calls, toolCallOf(c))
	}
	if text := a.Content.String(); text != "" || len(a.Calls) == 0 {
		m.Content = &text
	}
	return m
}

// chatLogprob is a token of an answer with its log-probability and the likeliest tokens at its place.
type chatLogprob struct {
	chatToken
	Top []chatToken `json:"top_logprobs"`
}

type chatToken struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

type chatLogprobs struct {
	Content *wire.Sequence `json:"content"`
	Refusal *string        `json:"refusal"`
}

// logprobsOf returns the log-probabilities of tokens as they are written.
func logprobsOf(h *serving.OpenModel, all []driver.Scored) *wire.Sequence {
	one := func(id token.ID, logprob float32) chatToken {
		text, raw := h.Piece(id)
		return chatToken{text, logprob, driver.Numbers(raw)}
	}
	return wire.Each(len(all), func(i int) (any, error) {
		l := chatLogprob{one(all[i].ID, all[i].Logprob), []chatToken{}}
		for _, x := range all[i].Top {
			l.Top = append(l.Top, one(x.ID, x.Logprob))
		}
		return l, nil
	})
}
