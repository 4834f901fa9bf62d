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
	wire.Sampling
	talk

	Model         string              `json:"model"`
	MaxTokens     *int                `json:"max_tokens"`
	MaxCompletion *int                `json:"max_completion_tokens"`
	Predict       *int                `json:"n_predict"` // llama.cpp's; -1: no bound
	N             *int                `json:"n"`
	Logprobs      bool                `json:"logprobs"`
	TopLogprobs   *int                `json:"top_logprobs"`
	Stream        bool                `json:"stream"`
	StreamOptions *wire.StreamOptions `json:"stream_options"`
	Format        *wire.Format        `json:"response_format"`
	Prediction    *wire.Prediction    `json:"prediction"`
}

// chatReply is an answer to a conversation under way.
type chatReply struct {
	*chatRequest
	x         *exchange
	host      *serving.Host
	job       *serving.Job
	created   int64
	predicted []token.ID
	stops     []token.ID
	answers   []chatAnswer
}

// chatAnswer is one of the answers.
type chatAnswer struct {
	reader   toolcall.Reader
	content  strings.Builder
	calls    []toolCall
	logprobs []chatLogprob
	ids      []token.ID
	begun    bool             // its first part is sent
	timings  *serving.Timings // up to its last token; nil: not asked for
}

// chatLogprob is what /v1/chat/completions tells of a token.
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

// chats handles POST /v1/chat/completions.
func (s *Server) chats(x *exchange) error {
	q := new(chatRequest)
	if err := s.read(x, q); err != nil {
		return err
	}
	h, err := x.host(q.Model)
	if err != nil {
		return err
	}
	c := &chatReply{chatRequest: q, x: x, host: h, created: unix()}
	if err := c.prepare(); err != nil {
		return err
	}
	defer c.job.Close()
	if c.Stream {
		return c.stream(s)
	}
	if err := c.job.Run(func(e serving.Event) error { c.take(e); return nil }); err != nil {
		return err
	}
	return x.reply(c.whole())
}

// prepare checks the fields and makes the job.
func (c *chatReply) prepare() error {
	q := c.chatRequest
	conversation, err := q.conversation()
	if err != nil {
		return err
	}
	top := 0
	wire.Set(&top, q.TopLogprobs)
	switch {
	case top < 0 || top > wire.MaxTop:
		return wire.Refuse("top_logprobs", "top_logprobs is %d; it must be from 0 to %d", top, wire.MaxTop)
	case q.TopLogprobs != nil && !q.Logprobs:
		return wire.Refuse("top_logprobs", "top_logprobs wants logprobs to be true")
	}
	if err := q.StreamOptions.Check(q.Stream); err != nil {
		return err
	}
	if err := q.Format.Check("response_format"); err != nil {
		return err
	}
	r, err := q.Request(c.host.Model, wire.DefaultsOpenAI)
	if err != nil {
		return err
	}
	if r.MaxTokens, err = q.most(); err != nil {
		return err
	}
	if err := q.Prediction.Apply(&r); err != nil {
		return err
	}
	if c.predicted, err = c.host.Model.Tokenize(r.Prediction, false, false); err != nil {
		return err
	}
	r.Top, c.stops = top, r.StopTokens
	p, err := conversation.prompt(c.host)
	if err != nil {
		return err
	}
	r.PromptIDs = p.Tokens
	n := 1
	wire.Set(&n, q.N)
	if c.job, err = c.host.Prepare(c.x.r.Context(), order(c.x, &q.Sampling, []grove.Request{r}, n, q.Stream)); err != nil {
		if e := wire.ErrorOf(err); e.Param == "prompt" {
			e.Param = "messages"
		}
		return err
	}
	c.answers = make([]chatAnswer, n)
	for i := range c.answers {
		c.answers[i].reader = toolcall.Reader{Names: conversation.names, ID: c.x.id + "/" + strconv.Itoa(i)}
	}
	return nil
}

// most returns how many tokens an answer may have, 0 for no bound.
func (q *chatRequest) most() (most int, err error) {
	for _, f := range []struct {
		name string
		v    *int
		low  int
	}{{"max_tokens", q.MaxTokens, 1}, {"max_completion_tokens", q.MaxCompletion, 1}, {"n_predict", q.Predict, -1}} {
		switch {
		case f.v == nil:
		case *f.v < f.low || *f.v == 0:
			return 0, wire.Refuse(f.name, "%s is %d; it must be 1 or more", f.name, *f.v)
		case most != 0 && most != *f.v:
			return 0, wire.Refuse(f.name, "%s is %d and differs from %d, another name's", f.name, *f.v, most)
		default:
			most = *f.v
		}
	}
	return max(0, most), nil
}

// take adds news to an answer and returns what is new of its text and its calls.
func (c *chatReply) take(e serving.Event) (content string, calls []toolCall) {
	if e.Answer < 0 {
		return "", nil
	}
	a := &c.answers[e.Answer]
	var found []toolcall.Call
	if e.Done {
		content, found = a.reader.End()
	} else {
		text := e.Token.Text
		if e.Token.ID != token.None {
			a.ids = append(a.ids, e.Token.ID)
			if c.Logprobs {
				a.logprobs = append(a.logprobs, c.logprob(e.Token))
			}
			if piece, _ := c.host.Piece(e.Token.ID); toolcall.IsMarker(piece) && !strings.Contains(text, piece) {
				text += piece
			}
		}
		content, found = a.reader.Add(text)
	}
	for _, f := range found {
		i := len(a.calls)
		call := toolCall{ID: a.reader.NextID(), Type: "function", Function: f}
		a.calls = append(a.calls, call)
		call.Index = &i
		calls = append(calls, call)
	}
	if len(a.calls) > 0 && strings.TrimSpace(content) == "" {
		content = "" // between calls and behind them
	}
	a.content.WriteString(content)
	return content, calls
}

func (c *chatReply) logprob(t grove.Token) chatLogprob {
	one := func(id token.ID, logprob float32) chatToken {
		text, raw := c.host.Piece(id)
		return chatToken{text, logprob, numbers(raw)}
	}
	l := chatLogprob{one(t.ID, t.Logprob), []chatToken{}}
	for _, x := range t.Top {
		l.Top = append(l.Top, one(x.ID, x.Logprob))
	}
	return l
}

// chatBody is an answer of /v1/chat/completions, whole or a part.
type chatBody = envelope[any]

// chatChoice is one of the answers, whole.
type chatChoice struct {
	Index      int           `json:"index"`
	Message    answerMessage `json:"message"`
	Logprobs   *chatLogprobs `json:"logprobs"`
	Finish     *string       `json:"finish_reason"`
	StopReason any           `json:"stop_reason"`
}

// answerMessage is a message of the assistant; its content is null where it calls tools and says nothing.
type answerMessage struct {
	Role    string     `json:"role"`
	Content *string    `json:"content"`
	Refusal *string    `json:"refusal"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

// chatPart is a part of one.
type chatPart struct {
	Index      int           `json:"index"`
	Delta      delta         `json:"delta"`
	Logprobs   *chatLogprobs `json:"logprobs"`
	Finish     *string       `json:"finish_reason"`
	StopReason any           `json:"stop_reason,omitempty"`
}

// delta is what a part adds to a message.
type delta struct {
	Role    string     `json:"role,omitempty"`
	Content *string    `json:"content,omitempty"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

func (c *chatReply) body(object string) chatBody {
	return chatBody{ID: "chatcmpl-" + c.x.id, Object: object, Created: c.created, Model: c.host.Name, System: fingerprint, Choices: []any{}}
}

// end returns why an answer ended.
func (c *chatReply) end(i int) (*string, any) {
	s := c.job.Answers[i].Stats()
	why := serving.Reason(s.Finish)
	if s.Finish == grove.FinishStop && len(c.answers[i].calls) > 0 {
		why = "tool_calls"
	}
	return &why, serving.StopReason(s, c.stops)
}

func (c *chatReply) spent() (serving.Usage, serving.Timings) {
	ids := make([][]token.ID, len(c.answers))
	for i := range c.answers {
		ids[i] = c.answers[i].ids
	}
	return c.job.Usage(ids, c.predicted), c.job.Timings()
}

// message returns an answer as a message.
func (a *chatAnswer) message() answerMessage {
	m := answerMessage{Role: "assistant", Calls: a.calls}
	if text := a.content.String(); text != "" || len(a.calls) == 0 {
		m.Content = &text
	}
	return m
}

// whole returns the answer of a request that does not stream.
func (c *chatReply) whole() chatBody {
	b := c.body("chat.completion")
	for i := range c.answers {
		a := &c.answers[i]
		choice := chatChoice{Index: i, Message: a.message()}
		if c.Logprobs {
			choice.Logprobs = &chatLogprobs{Content: append([]chatLogprob{}, a.logprobs...)}
		}
		choice.Finish, choice.StopReason = c.end(i)
		b.Choices = append(b.Choices, choice)
	}
	u, t := c.spent()
	b.Usage, b.Timings = &u, &t
	return b
}

// stream sends answers as they come.
func (c *chatReply) stream(s *Server) error {
	out := c.x.stream()
	if err := c.job.Run(func(e serving.Event) error {
		if e.Answer < 0 {
			return out.alive()
		}
		return c.send(out, e)
	}); err != nil {
		return out.fail(err)
	}
	if c.StreamOptions != nil && c.StreamOptions.IncludeUsage {
		b := c.body("chat.completion.chunk")
		u, t := c.spent()
		b.Usage, b.Timings = &u, &t
		if err := out.send(b); err != nil {
			return err
		}
	}
	return out.done()
}

// send sends what is new of an answer: its role first, then text, then calls, each by its name and then its
// arguments, and at last why it ended.
func (c *chatReply) send(out *stream, e serving.Event) error {
	a := &c.answers[e.Answer]
	part := func(p chatPart) error {
		p.Index = e.Answer
		b := c.body("chat.completion.chunk")
		b.Timings = a.timings
		b.Choices = append(b.Choices, p)
		return out.send(b.part(c.StreamOptions))
	}
	if !a.begun {
		a.begun = true
		empty := ""
		if err := part(chatPart{Delta: delta{Role: "assistant", Content: &empty}}); err != nil {
			return err
		}
	}
	if e.Timings != nil {
		a.timings = e.Timings
	}
	content, calls := c.take(e)
	if content != "" || len(a.logprobs) > 0 || e.Timings != nil {
		p := chatPart{Delta: delta{Content: &content}}
		if len(a.logprobs) > 0 {
			p.Logprobs, a.logprobs = &chatLogprobs{Content: a.logprobs}, nil
		}
		if err := part(p); err != nil {
			return err
		}
	}
	for _, call := range calls {
		arguments := toolCall{Index: call.Index, Function: toolcall.Call{Arguments: call.Function.Arguments}}
		call.Function.Arguments = ""
		for _, piece := range []toolCall{call, arguments} {
			if err := part(chatPart{Delta: delta{Calls: []toolCall{piece}}}); err != nil {
				return err
			}
		}
	}
	if !e.Done {
		return nil
	}
	p := chatPart{}
	p.Finish, p.StopReason = c.end(e.Answer)
	return part(p)
}
