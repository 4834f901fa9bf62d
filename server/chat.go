package server

import (
	"strconv"
	"strings"

	"grove"
	"grove/server/serving"
	"grove/server/toolcall"
	"grove/server/wire"
	"grove/text/token"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	fields
	limits
	conversation

	N             *int                `json:"n"`
	Logprobs      bool                `json:"logprobs"`
	TopLogprobs   *int                `json:"top_logprobs"`
	StreamOptions *wire.StreamOptions `json:"stream_options"`
	Format        *wire.Format        `json:"response_format"`
}

// parse implements [body].
func (q *chatRequest) parse(g *generation) (encoder, error) {
	g.blames = map[string]string{"prompt": "messages"}
	functions, err := q.prompt(g)
	if err != nil {
		return nil, err
	}
	return &chatEncoder{
		openAI:    openAI{generation: g, answerID: "chatcmpl-" + g.id, object: "chat.completion", part: "chat.completion.chunk", options: q.StreamOptions},
		functions: functions, logprobs: q.Logprobs,
	}, nil
}

// prompt checks the fields, adds the prompt of the conversation, and returns the names of the functions that may be called.
func (q *chatRequest) prompt(g *generation) (functions []string, err error) {
	c, err := q.chat()
	if err != nil {
		return nil, err
	}
	wire.Set(&g.N, q.N)
	top := 0
	wire.Set(&top, q.TopLogprobs)
	switch {
	case top < 0 || top > wire.MaxTop:
		return nil, wire.Refuse("top_logprobs", "top_logprobs is %d; it must be from 0 to %d", top, wire.MaxTop)
	case q.TopLogprobs != nil && !q.Logprobs:
		return nil, wire.Refuse("top_logprobs", "top_logprobs needs logprobs to be true")
	}
	if err := q.StreamOptions.Check(q.Stream); err != nil {
		return nil, err
	}
	if err := q.Format.Check("response_format"); err != nil {
		return nil, err
	}
	r, err := g.base(wire.DefaultsOpenAI)
	if err != nil {
		return nil, err
	}
	if r.MaxTokens, err = q.most(1, 0, 0); err != nil {
		return nil, err
	}
	p, err := c.render(g.host)
	if err != nil {
		return nil, err
	}
	r.Top, r.PromptIDs = top, p.Tokens
	g.Prompts = []grove.Request{r}
	return c.functions, nil
}

// chatEncoder writes the answers of /v1/chat/completions.
type chatEncoder struct {
	openAI
	functions []string
	logprobs  bool
	answers   []chatAnswer
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
	Role    string     `json:"role"`
	Content *string    `json:"content"`
	Refusal *string    `json:"refusal"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

// chatPart is a part of an answer.
type chatPart struct {
	Index      int           `json:"index"`
	Delta      chatDelta     `json:"delta"`
	Logprobs   *chatLogprobs `json:"logprobs"`
	Finish     *string       `json:"finish_reason"`
	StopReason any           `json:"stop_reason,omitempty"`
}

// chatDelta is what a part adds to a message.
type chatDelta struct {
	Role    string     `json:"role,omitempty"`
	Content *string    `json:"content,omitempty"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

// begin implements [encoder].
func (e *chatEncoder) begin() error {
	e.answers = make([]chatAnswer, len(e.job.Answers))
	for i := range e.answers {
		e.answers[i].reader = toolcall.Reader{Names: e.functions, ID: e.id + "/" + strconv.Itoa(i)}
	}
	return nil
}

// token implements [encoder].
func (e *chatEncoder) token(answer int, t grove.Token, so *serving.Timings) error {
	a := &e.answers[answer]
	content, calls := a.add(e.host, t, e.logprobs)
	return e.sendNew(answer, content, calls, so)
}

// end implements [encoder].
func (e *chatEncoder) end(answer int) error {
	content, calls := e.answers[answer].close()
	if err := e.sendNew(answer, content, calls, nil); err != nil || e.out == nil {
		return err
	}
	p := chatPart{Index: answer}
	p.Finish, p.StopReason = e.why(answer)
	return e.send(p, e.answers[answer].so)
}

// finish implements [encoder].
func (e *chatEncoder) finish() error {
	if e.out != nil {
		return e.done()
	}
	all := make([]any, len(e.answers))
	for i := range e.answers {
		a := &e.answers[i]
		c := chatChoice{Index: i, Message: a.message()}
		if e.logprobs {
			c.Logprobs = &chatLogprobs{Content: append([]chatLogprob{}, a.logprobs...)}
		}
		c.Finish, c.StopReason = e.why(i)
		all[i] = c
	}
	return e.whole(all)
}

// why returns why an answer ended.
func (e *chatEncoder) why(answer int) (*string, any) {
	why, stop := e.ended(answer)
	if why == string(grove.FinishStop) && len(e.answers[answer].calls) > 0 {
		why = "tool_calls"
	}
	return &why, stop
}

// sendNew sends the new part of an answer: the role first, then text, then calls, of each the name and then the arguments.
func (e *chatEncoder) sendNew(answer int, content string, calls []toolCall, so *serving.Timings) error {
	if e.out == nil {
		return nil
	}
	a := &e.answers[answer]
	if !a.begun {
		a.begun = true
		if err := e.send(chatPart{Index: answer, Delta: chatDelta{Role: "assistant", Content: new(string)}}, nil); err != nil {
			return err
		}
	}
	if so != nil {
		a.so = so
	}
	if content != "" || len(a.logprobs) > 0 || so != nil {
		p := chatPart{Index: answer, Delta: chatDelta{Content: &content}}
		if len(a.logprobs) > 0 {
			p.Logprobs, a.logprobs = &chatLogprobs{Content: a.logprobs}, nil
		}
		if err := e.send(p, a.so); err != nil {
			return err
		}
	}
	for _, c := range calls {
		arguments := toolCall{Index: c.Index, Function: toolcall.Call{Arguments: c.Function.Arguments}}
		c.Function.Arguments = ""
		for _, piece := range []toolCall{c, arguments} {
			if err := e.send(chatPart{Index: answer, Delta: chatDelta{Calls: []toolCall{piece}}}, a.so); err != nil {
				return err
			}
		}
	}
	return nil
}

// chatAnswer is the message of an answer under way.
type chatAnswer struct {
	reader   toolcall.Reader
	content  strings.Builder
	calls    []toolCall
	logprobs []chatLogprob    // in a stream: those that are not sent yet
	begun    bool             // its first part is sent
	so       *serving.Timings // up to its last token; nil: not asked for
}

// add adds a token and returns the new text and the new calls.
func (a *chatAnswer) add(h *serving.Host, t grove.Token, logprobs bool) (content string, calls []toolCall) {
	text := t.Text
	if t.ID != token.None {
		if logprobs {
			a.logprobs = append(a.logprobs, chatLogprobOf(h, t))
		}
		if piece, _ := h.Piece(t.ID); toolcall.IsMarker(piece) && !strings.Contains(text, piece) {
			text += piece
		}
	}
	return a.keep(a.reader.Add(text))
}

// close ends the answer and returns the text and the calls that the reader held back.
func (a *chatAnswer) close() (content string, calls []toolCall) { return a.keep(a.reader.End()) }

// keep adds text and calls to the message. White space between calls and behind them is dropped.
func (a *chatAnswer) keep(content string, found []toolcall.Call) (string, []toolCall) {
	var calls []toolCall
	for _, f := range found {
		i := len(a.calls)
		c := toolCall{ID: a.reader.NextID(), Type: "function", Function: f}
		a.calls = append(a.calls, c)
		c.Index = &i
		calls = append(calls, c)
	}
	if len(a.calls) > 0 && strings.TrimSpace(content) == "" {
		content = ""
	}
	a.content.WriteString(content)
	return content, calls
}

// message returns the answer as a message.
func (a *chatAnswer) message() answerMessage {
	m := answerMessage{Role: "assistant", Calls: a.calls}
	if text := a.content.String(); text != "" || len(a.calls) == 0 {
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
	Content []chatLogprob `json:"content"`
	Refusal *string       `json:"refusal"`
}

func chatLogprobOf(h *serving.Host, t grove.Token) chatLogprob {
	one := func(id token.ID, logprob float32) chatToken {
		text, raw := h.Piece(id)
		return chatToken{text, logprob, numbers(raw)}
	}
	l := chatLogprob{one(t.ID, t.Logprob), []chatToken{}}
	for _, x := range t.Top {
		l.Top = append(l.Top, one(x.ID, x.Logprob))
	}
	return l
}
