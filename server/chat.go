package server

import (
	"strconv"
	"strings"

	"grove"
	"grove/token"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	sampling
	talk

	Model         string         `json:"model"`
	MaxTokens     *int           `json:"max_tokens"`
	MaxCompletion *int           `json:"max_completion_tokens"`
	Predict       *int           `json:"n_predict"` // llama.cpp's; -1: no bound
	N             *int           `json:"n"`
	Logprobs      bool           `json:"logprobs"`
	TopLogprobs   *int           `json:"top_logprobs"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options"`
	Format        *format        `json:"response_format"`
	Prediction    *prediction    `json:"prediction"`
}

// chat is an answer to a conversation under way.
type chat struct {
	*chatRequest
	x         *exchange
	host      *host
	job       *job
	created   int64
	predicted []token.ID
	stops     []token.ID
	answers   []chatAnswer
}

// chatAnswer is one of the answers.
type chatAnswer struct {
	reader   callReader
	content  strings.Builder
	calls    []toolCall
	logprobs []chatLogprob
	ids      []token.ID
	begun    bool // its first part is sent
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
	h, err := s.host(q.Model)
	if err != nil {
		return err
	}
	c := &chat{chatRequest: q, x: x, host: h, created: unix()}
	if err := c.prepare(s); err != nil {
		return err
	}
	defer c.job.close()
	if c.Stream {
		return c.stream(s)
	}
	if err := s.run(c.job, func(e event) error { c.take(e); return nil }); err != nil {
		return err
	}
	return x.reply(c.whole())
}

// prepare checks the fields and makes the job.
func (c *chat) prepare(s *Server) error {
	q := c.chatRequest
	conversation, names, err := q.conversation()
	if err != nil {
		return err
	}
	top := 0
	set(&top, q.TopLogprobs)
	switch {
	case top < 0 || top > maxTop:
		return refuse("top_logprobs", "top_logprobs is %d; it must be from 0 to %d", top, maxTop)
	case q.TopLogprobs != nil && !q.Logprobs:
		return refuse("top_logprobs", "top_logprobs wants logprobs to be true")
	}
	if err := q.StreamOptions.check(q.Stream); err != nil {
		return err
	}
	if err := q.Format.check("response_format"); err != nil {
		return err
	}
	r, err := q.request(c.host, defaultsOpenAI)
	if err != nil {
		return err
	}
	if r.MaxTokens, err = q.most(); err != nil {
		return err
	}
	if err := q.Prediction.apply(&r); err != nil {
		return err
	}
	if c.predicted, err = c.host.model.Tokenize(r.Prediction, false, false); err != nil {
		return err
	}
	r.Top, c.stops = top, r.StopTokens
	if _, r.PromptIDs, err = c.host.render(conversation); err != nil {
		return err
	}
	n := 1
	set(&n, q.N)
	if c.job, err = s.prepare(c.x.r.Context(), c.host, c.x.id, []grove.Request{r}, n); err != nil {
		if e := asAPIError(err); e.Param == "prompt" {
			e.Param = "messages"
		}
		return err
	}
	c.answers = make([]chatAnswer, n)
	for i := range c.answers {
		c.answers[i].reader = callReader{names: names, id: c.x.id + "/" + strconv.Itoa(i)}
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
			return 0, refuse(f.name, "%s is %d; it must be 1 or more", f.name, *f.v)
		case most != 0 && most != *f.v:
			return 0, refuse(f.name, "%s says something else than another name of it", f.name)
		default:
			most = *f.v
		}
	}
	return max(0, most), nil
}

// take adds news to an answer and returns what is new of its text and its calls.
func (c *chat) take(e event) (content string, calls []toolCall) {
	if e.answer < 0 {
		return "", nil
	}
	a := &c.answers[e.answer]
	var found []functionCall
	if e.done {
		content, found = a.reader.end()
	} else {
		text := e.token.Text
		if e.token.ID != token.None {
			a.ids = append(a.ids, e.token.ID)
			if c.Logprobs {
				a.logprobs = append(a.logprobs, c.logprob(e.token))
			}
			if piece, _ := c.host.piece(e.token.ID); isMarker(piece) && !strings.Contains(text, piece) {
				text += piece
			}
		}
		content, found = a.reader.add(text)
	}
	for _, f := range found {
		i := len(a.calls)
		call := toolCall{ID: a.reader.nextID(), Type: "function", Function: f}
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

func (c *chat) logprob(t grove.Token) chatLogprob {
	one := func(id token.ID, logprob float32) chatToken {
		text, raw := c.host.piece(id)
		return chatToken{text, logprob, numbers(raw)}
	}
	l := chatLogprob{one(t.ID, t.Logprob), []chatToken{}}
	for _, x := range t.Top {
		l.Top = append(l.Top, one(x.ID, x.Logprob))
	}
	return l
}

// chatBody is an answer of /v1/chat/completions, whole or a part.
type chatBody struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	System  string   `json:"system_fingerprint"`
	Choices []any    `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
	Timings *timings `json:"timings,omitempty"`
}

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

func (c *chat) body(object string) chatBody {
	return chatBody{ID: "chatcmpl-" + c.x.id, Object: object, Created: c.created, Model: c.host.name, System: fingerprint, Choices: []any{}}
}

// end returns why an answer ended.
func (c *chat) end(i int) (*string, any) {
	s := c.job.answers[i].generation.Stats()
	why := reason(s.Finish)
	if s.Finish == grove.FinishStop && len(c.answers[i].calls) > 0 {
		why = "tool_calls"
	}
	return &why, stopReason(s, c.stops)
}

func (c *chat) spent() (usage, timings) {
	ids := make([][]token.ID, len(c.answers))
	for i := range c.answers {
		ids[i] = c.answers[i].ids
	}
	return c.job.usage(ids, c.predicted), c.job.timings()
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
func (c *chat) whole() chatBody {
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
func (c *chat) stream(s *Server) error {
	out := c.x.stream()
	if err := s.run(c.job, func(e event) error {
		if e.answer < 0 {
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
func (c *chat) send(out *stream, e event) error {
	a := &c.answers[e.answer]
	part := func(p chatPart) error {
		p.Index = e.answer
		b := c.body("chat.completion.chunk")
		b.Choices = append(b.Choices, p)
		return out.send(c.withUsage(b))
	}
	if !a.begun {
		a.begun = true
		empty := ""
		if err := part(chatPart{Delta: delta{Role: "assistant", Content: &empty}}); err != nil {
			return err
		}
	}
	content, calls := c.take(e)
	if content != "" || len(a.logprobs) > 0 {
		p := chatPart{Delta: delta{Content: &content}}
		if len(a.logprobs) > 0 {
			p.Logprobs, a.logprobs = &chatLogprobs{Content: a.logprobs}, nil
		}
		if err := part(p); err != nil {
			return err
		}
	}
	for _, call := range calls {
		arguments := toolCall{Index: call.Index, Function: functionCall{Arguments: call.Function.Arguments}}
		call.Function.Arguments = ""
		for _, piece := range []toolCall{call, arguments} {
			if err := part(chatPart{Delta: delta{Calls: []toolCall{piece}}}); err != nil {
				return err
			}
		}
	}
	if !e.done {
		return nil
	}
	p := chatPart{}
	p.Finish, p.StopReason = c.end(e.answer)
	return part(p)
}

// withUsage is a part of a stream: it has a usage of null where the last one tells it.
func (c *chat) withUsage(b chatBody) any {
	if c.StreamOptions == nil || !c.StreamOptions.IncludeUsage {
		return b
	}
	return struct {
		chatBody
		Usage *usage `json:"usage"`
	}{chatBody: b}
}
