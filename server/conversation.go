package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"grove"
	"grove/server/serving"
	"grove/server/toolcall"
	"grove/server/wire"
	"grove/text/chat"
)

// message is one message of a conversation.
type message struct {
	Role       string           `json:"role"`
	Content    wire.ContentText `json:"content"`
	Reasoning  string           `json:"reasoning_content,omitempty"`
	Name       string           `json:"name,omitempty"`
	ToolCalls  []toolCall       `json:"tool_calls,omitempty"`
	ToolCallID string           `json:"tool_call_id,omitempty"`
	Refusal    *string          `json:"refusal,omitempty"`
}

// toolCall is a call in a message of the assistant.
type toolCall struct {
	Index    *int          `json:"index,omitempty"` // in streams
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function toolcall.Call `json:"function"`
}

// conversation are the fields of a request that its prompt is rendered from; the chat and template routes share them.
type conversation struct {
	Messages []message                  `json:"messages"`
	Tools    []json.RawMessage          `json:"tools"`
	Choice   json.RawMessage            `json:"tool_choice"`
	Parallel *bool                      `json:"parallel_tool_calls"`
	Vars     map[string]json.RawMessage `json:"chat_template_kwargs"`
	Effort   *string                    `json:"reasoning_effort"`
	Answer   *bool                      `json:"add_generation_prompt"`
	GoOn     bool                       `json:"continue_final_message"`
}

// chatInput is a conversation as the library takes it.
type chatInput struct {
	messages  []grove.Message
	options   grove.ChatOptions
	functions []string // names of those that may be called
}

// chat checks the fields.
func (q *conversation) chat() (c chatInput, err error) {
	if len(q.Messages) == 0 {
		return c, wire.Refuse("messages", "there is no message")
	}
	if len(q.Messages) > wire.MaxMessages {
		return c, wire.Refuse("messages", "%d messages; at most %d", len(q.Messages), wire.MaxMessages)
	}
	if len(q.Tools) > wire.MaxTools {
		return c, wire.Refuse("tools", "%d tools; at most %d", len(q.Tools), wire.MaxTools)
	}
	for i := range q.Messages {
		m, err := q.Messages[i].toTemplate()
		if err != nil {
			return c, wire.Refuse("messages", "message %d: %v", i, err)
		}
		c.messages = append(c.messages, m)
	}
	c.options.NoAnswer, c.options.Continue = q.Answer != nil && !*q.Answer, q.GoOn
	c.options.Vars = q.Vars
	if q.Effort != nil {
		if c.options.Vars = maps.Clone(q.Vars); c.options.Vars == nil {
			c.options.Vars = map[string]json.RawMessage{}
		}
		effort, err := json.Marshal(*q.Effort)
		if err != nil {
			return c, wire.Refuse("reasoning_effort", "%v", err)
		}
		c.options.Vars["reasoning_effort"] = effort
	}
	if c.functions, err = q.functions(); c.functions != nil {
		c.options.Tools = q.Tools
	}
	return c, err
}

// functions returns the names of the functions that may be called; nil: none may.
func (q *conversation) functions() (names []string, err error) {
	use, err := q.useTools()
	if err != nil || !use {
		return nil, err
	}
	for i, raw := range q.Tools {
		var tool struct {
			Type     string `json:"type"`
			Function struct {
				Name   string `json:"name"`
				Strict bool   `json:"strict"`
			} `json:"function"`
		}
		switch err := json.Unmarshal(raw, &tool); {
		case err != nil || tool.Type != "function" || tool.Function.Name == "":
			return nil, wire.Refuse("tools", "tool %d is not a function with a name", i)
		case tool.Function.Strict:
			return nil, wire.Unsupported("tools", wire.NoGrammar+", and arguments that keep to a schema (strict) could not be promised")
		case slices.Contains(names, tool.Function.Name):
			return nil, wire.Refuse("tools", "two tools are called %q", wire.Clip(tool.Function.Name))
		}
		names = append(names, tool.Function.Name)
	}
	return names, nil
}

// useTools reports whether the model may call tools. It refuses choices that would have to be enforced.
func (q *conversation) useTools() (bool, error) {
	var choice string
	switch raw := bytes.TrimSpace(q.Choice); {
	case len(raw) == 0 || string(raw) == "null":
		choice = "auto"
	case json.Unmarshal(raw, &choice) != nil:
		return false, wire.Unsupported("tool_choice", wire.NoGrammar+", and a call of one function could not be promised")
	}
	switch {
	case choice == "required":
		return false, wire.Unsupported("tool_choice", wire.NoGrammar+", and a call could not be promised")
	case choice != "auto" && choice != "none":
		return false, wire.Refuse("tool_choice", "tool_choice %q is not known", wire.Clip(choice))
	case q.Parallel != nil && !*q.Parallel && len(q.Tools) > 0:
		return false, wire.Unsupported("parallel_tool_calls", wire.NoGrammar+", and a single call could not be promised")
	}
	return choice == "auto" && len(q.Tools) > 0, nil
}

// toTemplate returns a message as the library takes it.
func (m *message) toTemplate() (t grove.Message, err error) {
	if m.Refusal != nil && *m.Refusal != "" {
		return t, errors.New("refusals are not supported")
	}
	t = grove.Message{Role: m.Role, Content: string(m.Content), Reasoning: m.Reasoning, Name: m.Name, ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		call := chat.ToolCall{ID: c.ID, Type: c.Type}
		call.Function.Name = c.Function.Name
		if call.Function.Arguments, err = json.Marshal(c.Function.Arguments); err != nil {
			return t, err
		}
		t.ToolCalls = append(t.ToolCalls, call)
	}
	return t, nil
}

// render returns the prompt that the model's template makes of a conversation. Its errors are the request's fault.
func (c *chatInput) render(h *serving.Host) (grove.ChatPrompt, error) {
	p, err := h.Model.ApplyTemplate(c.messages, c.options)
	switch {
	case errors.Is(err, chat.ErrTools):
		return p, wire.Refuse("tools", "%v", err)
	case err != nil:
		return p, wire.Refuse("messages", "%v", err)
	case len(p.Tokens) == 0:
		return p, wire.Refuse("messages", "the template makes an empty prompt of these messages")
	}
	return p, nil
}

// applyTemplate handles POST /apply-template.
func applyTemplate(x *request) error {
	var q struct {
		conversation
		Model string `json:"model"`
	}
	if err := x.read(&q); err != nil {
		return err
	}
	h, err := x.model(q.Model)
	if err != nil {
		return err
	}
	c, err := q.chat()
	if err != nil {
		return err
	}
	p, err := c.render(h)
	if err != nil {
		return err
	}
	return x.reply(map[string]string{"prompt": p.Text})
}
