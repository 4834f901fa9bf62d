package openai

import (
	"cmp"
	"encoding/json"
	"errors"

	"grove"
	"grove/internal/text/answer"
	"grove/internal/text/chat"
	"grove/server/driver"
	"grove/server/structured"
	"grove/server/wire"
)

// message is one message of a conversation.
type message struct {
	Role       string           `json:"role" bytes:"256"`
	Content    wire.ContentText `json:"content" most:"65536"`
	Reasoning  string           `json:"reasoning_content,omitempty"`
	Thoughts   string           `json:"reasoning,omitempty"` // the same, as vLLM and OpenRouter call it
	Name       string           `json:"name,omitempty" bytes:"1024"`
	ToolCalls  []toolCall       `json:"tool_calls,omitempty" most:"16384"`
	ToolCallID string           `json:"tool_call_id,omitempty" bytes:"65536"`
	Refusal    *string          `json:"refusal,omitempty"`
}

// Tolerated implements [wire.Tolerant].
func (message) Tolerated() []wire.Toleration { return wire.MessageFields }

// toolCall is a call in a message of the assistant.
type toolCall struct {
	Index    *int     `json:"index,omitempty"` // in streams
	ID       string   `json:"id,omitempty" bytes:"65536"`
	Type     string   `json:"type,omitempty" bytes:"256"`
	Function function `json:"function"`
}

// function is a function's name and its arguments, an object as a text.
type function struct {
	Name      string `json:"name,omitempty" bytes:"1024"`
	Arguments string `json:"arguments" holds:"json"`
}

// Tolerated implements [wire.Tolerant].
func (toolCall) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "provider_specific_fields cache_control", Values: "*", Client: "litellm", Reason: "they describe the call"}}
}

// conversation are the fields of a request that its prompt is rendered from; the chat and template routes share them.
type conversation struct {
	Messages []message                  `json:"messages" most:"16384"`
	Tools    []json.RawMessage          `json:"tools" most:"1024"`
	Choice   json.RawMessage            `json:"tool_choice"`
	Parallel *bool                      `json:"parallel_tool_calls"`
	Vars     map[string]json.RawMessage `json:"chat_template_kwargs" most:"256" bytes:"256"`
	Answer   *bool                      `json:"add_generation_prompt"`
	GoOn     bool                       `json:"continue_final_message"`
	thoughts

	origins []int // as [driver.Chat.Origins]
}

// chat checks the fields.
func (q *conversation) chat() (c driver.Chat, err error) {
	if err := c.AddMessages(len(q.Messages), func(i int) (grove.Message, error) { return q.Messages[i].toTemplate() }); err != nil {
		return c, err
	}
	c.Origins = q.origins
	c.Options.NoAnswer, c.Options.Continue = q.Answer != nil && !*q.Answer, q.GoOn
	c.Options.Vars = q.Vars
	if err := q.thoughts.apply(&c); err != nil {
		return c, err
	}
	c.Options.OneCall = q.Parallel != nil && !*q.Parallel
	choice, err := structured.ChoiceOf(q.Choice)
	if err != nil {
		return c, err
	}
	return c, c.UseTools(q.Tools, choice)
}

// toTemplate returns a message as the library takes it.
func (m *message) toTemplate() (t grove.Message, err error) {
	if m.Refusal != nil && *m.Refusal != "" {
		return t, errors.New("refusals are not supported")
	}
	t = grove.Message{Role: m.Role, Content: m.Content.Text(), Parts: m.Content, Reasoning: cmp.Or(m.Reasoning, m.Thoughts), Name: m.Name, ToolCallID: m.ToolCallID}
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

// templateRequest is the body of /apply-template.
type templateRequest struct {
	conversation
	Model string `json:"model" bytes:"1024"`
}

// applyTemplate handles POST /apply-template, a route of llama.cpp with the messages of OpenAI.
func applyTemplate(x *driver.Request) error {
	var q templateRequest
	h, err := x.Open(&q, &q.Model)
	if err != nil {
		return err
	}
	c, err := q.chat()
	if err != nil {
		return err
	}
	p, err := x.Prompt(h, &c)
	if err != nil {
		return err
	}
	return x.Reply(map[string]string{"prompt": p.Text})
}

// toolCallOf returns a call as messages have it.
func toolCallOf(c answer.Call) toolCall {
	return toolCall{ID: c.ID, Type: "function", Function: function{c.Name, c.Arguments}}
}
