package ollama

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"grove"
	"grove/internal/text/chat"
	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/structured"
	"grove/server/wire"
)

// chatRequest is the body of /api/chat.
type chatRequest struct {
	common

	Messages []message         `json:"messages" most:"16384"`
	Tools    []json.RawMessage `json:"tools" most:"1024"`
}

// message is a message of the conversation.
type message struct {
	Role       string            `json:"role" bytes:"256"`
	Content    content           `json:"content" most:"65536"`
	Thinking   string            `json:"thinking,omitempty"`
	Images     []json.RawMessage `json:"images,omitempty" most:"1024"`
	ToolCalls  []toolCall        `json:"tool_calls,omitempty" most:"16384"`
	ToolName   string            `json:"tool_name,omitempty" bytes:"1024"`
	Name       string            `json:"name,omitempty" bytes:"1024"` // an older name of tool_name
	ToolCallID string            `json:"tool_call_id,omitempty" bytes:"65536"`
}

// Tolerated implements [wire.Tolerant].
func (message) Tolerated() []wire.Toleration { return wire.MessageFields }

// content is a text. Clients that send parts, as OpenAI's API has them, send texts in them.
type content string

// ReadJSON implements [wire.Own].
func (c *content) ReadJSON(r *wire.Reader) error {
	var parts wire.ContentText
	err := parts.ReadJSON(r)
	*c = content(parts.Text())
	return err
}

// toolCall is a call in a message; its arguments are an object, or a text that holds one.
type toolCall struct {
	ID       string `json:"id,omitempty" bytes:"65536"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name" bytes:"1024"`
		Arguments json.RawMessage `json:"arguments" holds:"json"`
	} `json:"function"`
}

// Tolerated implements [wire.Tolerant].
func (toolCall) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "type index", Values: "*", Client: "LangChain.js, n8n, Open WebUI", Reason: "all calls are of functions, in their order"}}
}

// Parse implements [driver.Body]. A request without messages opens the model.
func (q *chatRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	r, err := q.request(g)
	if err != nil {
		return nil, err
	}
	if len(q.Messages) == 0 {
		return nil, g.Reply(q.opened(g, "message", message{Role: "assistant"}))
	}
	c, err := q.chat()
	if err != nil {
		return nil, err
	}
	format, err := structured.Bare("format", q.Format)
	if err != nil {
		return nil, err
	}
	if err = q.ask(g, r, &c, format); err != nil {
		return nil, err
	}
	e := newEncoder(g, &q.common, c)
	e.chat = true
	return e, nil
}

// chat returns the conversation as the library takes it.
func (q *chatRequest) chat() (c driver.Chat, err error) {
	if err := c.AddMessages(len(q.Messages), func(i int) (grove.Message, error) { return q.Messages[i].toTemplate() }); err != nil {
		return c, err
	}
	c.Options.Continue = q.Messages[len(q.Messages)-1].Role == "assistant" // as ollama does
	q.Think.apply(&c)
	if len(q.Tools) == 0 {
		return c, nil
	}
	return c, c.UseTools(q.Tools, structured.Tools{})
}

// toTemplate returns a message as the library takes it.
func (m *message) toTemplate() (t grove.Message, err error) {
	if len(m.Images) > 0 {
		return t, errors.New("images are not supported")
	}
	t = grove.Message{Role: m.Role, Content: string(m.Content), Reasoning: m.Thinking, Name: m.ToolName, ToolCallID: m.ToolCallID}
	if m.Role == "tool" {
		t.Name = cmp.Or(t.Name, m.Name)
	}
	for _, c := range m.ToolCalls {
		call := chat.ToolCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Function.Name, c.Function.Arguments
		t.ToolCalls = append(t.ToolCalls, call)
	}
	return t, nil
}

// generateRequest is the body of /api/generate.
type generateRequest struct {
	common

	Prompt   string            `json:"prompt"`
	Suffix   string            `json:"suffix"`
	System   string            `json:"system"`
	Template string            `json:"template"`
	Raw      bool              `json:"raw"`
	Context  []int64           `json:"context" most:"1048576"` // tokens of an earlier prompt and its answer
	Images   []json.RawMessage `json:"images" most:"1024"`
}

// Parse implements [driver.Body]. A request without a prompt opens the model.
func (q *generateRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	r, err := q.request(g)
	if err != nil {
		return nil, err
	}
	switch {
	case len(q.Images) > 0:
		return nil, wire.Unsupported("images", "images are not supported")
	case q.Template != "":
		return nil, wire.Unsupported("template", "a request cannot bring a template; grove serve --chat-template chooses one")
	case q.Prompt == "" && q.Suffix == "":
		return nil, g.Reply(q.opened(g, "response", ""))
	}
	c, err := q.prompt(g, &r)
	if err != nil {
		return nil, err
	}
	format, err := structured.Bare("format", q.Format)
	if err = g.Constrain(&r, format, err, &c); err != nil {
		return nil, err
	}
	if err = q.bound(g, &r); err != nil {
		return nil, err
	}
	g.Prompts = []grove.Request{r}
	return newEncoder(g, &q.common, c), nil
}

// prompt sets the prompt of a request: a text as it is, a text to fill in, or a conversation of one question behind the tokens of
// the field context.
func (q *generateRequest) prompt(g *driver.Generation, r *grove.Request) (c driver.Chat, err error) {
	if q.Suffix != "" {
		if q.System != "" || len(q.Context) > 0 || q.Think != nil && q.Think.on {
			return c, wire.Refuse("suffix", "suffix cannot be combined with system, context or think")
		}
		r.Prompt, r.Suffix = q.Prompt, &q.Suffix
		return c, nil
	}
	var ids []token.ID
	for _, id := range q.Context {
		if err := wire.CheckID(g.Model.Model, "context", id); err != nil {
			return c, err
		}
		ids = append(ids, token.ID(id))
	}
	if q.Raw || g.Model.Template() == nil {
		switch {
		case q.System != "":
			return c, wire.Refuse("system", "a text without a template has no place for it")
		case q.Think != nil && q.Think.on:
			return c, wire.Refuse("think", "the template of a conversation begins thoughts; this text has none")
		}
		r.PromptIDs, err = wire.AppendTokens(g.R.Context(), ids, g.Model.Model, q.Prompt, len(ids) == 0)
		return c, err
	}
	if q.System != "" {
		c.Messages = append(c.Messages, grove.Message{Role: "system", Content: q.System})
	}
	c.Messages = append(c.Messages, grove.Message{Role: "user", Content: q.Prompt})
	q.Think.apply(&c)
	p, err := c.Prompt(g.R.Context(), g.Model)
	r.PromptIDs = append(ids, p.Tokens...)
	return c, err
}

// opened returns the answer to a request that asks for nothing but the model.
func (q *common) opened(g *driver.Generation, field string, empty any) map[string]any {
	reason := "load"
	if q.KeepAlive != nil && *q.KeepAlive == 0 {
		reason = "unload"
	}
	return map[string]any{"model": g.Model.Name, "created_at": time.Now().UTC(), field: empty, "done": true, "done_reason": reason}
}
