package server

import (
	"bytes"
	"encoding/json"
	"slices"

	"grove/token"
)

// renderer turns conversations into prompts, by a model's template. Its errors are the request's fault.
type renderer interface {
	render(c conversation) (text string, ids []token.ID, err error)
}

// conversation is what a prompt is made of.
type conversation struct {
	messages []message
	tools    []json.RawMessage          // in OpenAI's form
	vars     map[string]json.RawMessage // further variables of the template
	goOn     bool                       // the last message is an answer that goes on
	noAnswer bool                       // no answer is begun behind the last message
}

// message is one message of a conversation.
type message struct {
	Role       string      `json:"role"`
	Content    contentText `json:"content"`
	Reasoning  string      `json:"reasoning_content,omitempty"`
	Name       string      `json:"name,omitempty"`
	ToolCalls  []toolCall  `json:"tool_calls,omitempty"`
	ToolCallID string      `json:"tool_call_id,omitempty"`
	Refusal    *string     `json:"refusal,omitempty"`
}

// toolCall is a call that an assistant's message asks for.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in streams
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

// functionCall is a function's name and its arguments, an object as a text.
type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// talk are the fields of a request that its conversation is made of; the chat and template routes share them.
type talk struct {
	Messages []message                  `json:"messages"`
	Tools    []json.RawMessage          `json:"tools"`
	Choice   json.RawMessage            `json:"tool_choice"`
	Parallel *bool                      `json:"parallel_tool_calls"`
	Vars     map[string]json.RawMessage `json:"chat_template_kwargs"`
	Effort   *string                    `json:"reasoning_effort"`
	Answer   *bool                      `json:"add_generation_prompt"`
	GoOn     bool                       `json:"continue_final_message"`
}

// conversation checks the fields. names are the functions that may be called.
func (q *talk) conversation() (c conversation, names []string, err error) {
	if len(q.Messages) == 0 {
		return c, nil, refuse("messages", "there is no message")
	}
	for i, m := range q.Messages {
		if m.Refusal != nil && *m.Refusal != "" {
			return c, nil, refuse("messages", "message %d: refusals are not supported", i)
		}
	}
	c = conversation{messages: q.Messages, vars: q.Vars, goOn: q.GoOn, noAnswer: q.Answer != nil && !*q.Answer}
	if q.Effort != nil {
		if c.vars == nil {
			c.vars = map[string]json.RawMessage{}
		}
		effort, err := json.Marshal(*q.Effort)
		if err != nil {
			return c, nil, refuse("reasoning_effort", "%v", err)
		}
		c.vars["reasoning_effort"] = effort
	}
	use, err := q.useTools()
	if err != nil || !use {
		return c, nil, err
	}
	for i, raw := range q.Tools {
		var tool struct {
			Type     string `json:"type"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if json.Unmarshal(raw, &tool) != nil || tool.Type != "function" || tool.Function.Name == "" {
			return c, nil, refuse("tools", "tool %d is not a function with a name", i)
		}
		if slices.Contains(names, tool.Function.Name) {
			return c, nil, refuse("tools", "two tools are called %q", clip(tool.Function.Name))
		}
		names = append(names, tool.Function.Name)
	}
	c.tools = q.Tools
	return c, names, nil
}

// useTools reports whether the model may call tools. What would have to be enforced is refused.
func (q *talk) useTools() (bool, error) {
	var choice string
	switch raw := bytes.TrimSpace(q.Choice); {
	case len(raw) == 0 || string(raw) == "null":
		choice = "auto"
	case json.Unmarshal(raw, &choice) != nil:
		return false, unsupported("tool_choice", noGrammar+", and a call of one function could not be promised")
	}
	switch {
	case choice == "required":
		return false, unsupported("tool_choice", noGrammar+", and a call could not be promised")
	case choice != "auto" && choice != "none":
		return false, refuse("tool_choice", "tool_choice %q is not known", clip(choice))
	case q.Parallel != nil && !*q.Parallel && len(q.Tools) > 0:
		return false, unsupported("parallel_tool_calls", noGrammar+", and a single call could not be promised")
	}
	return choice == "auto" && len(q.Tools) > 0, nil
}

// render returns the prompt of a conversation.
func (h *host) render(c conversation) (string, []token.ID, error) {
	if h.renderer == nil {
		return "", nil, refuse("messages", "the model %q has no template for conversations", h.name)
	}
	text, ids, err := h.renderer.render(c)
	if err != nil {
		e := asRequestError(err)
		if e.Param == "" {
			e.Param = "messages"
		}
		return "", nil, e
	}
	return text, ids, nil
}

// applyTemplate handles POST /apply-template.
func (s *Server) applyTemplate(x *exchange) error {
	var q struct {
		talk
		Model string `json:"model"`
	}
	if err := s.read(x, &q); err != nil {
		return err
	}
	h, err := s.host(q.Model)
	if err != nil {
		return err
	}
	c, _, err := q.conversation()
	if err != nil {
		return err
	}
	text, _, err := h.render(c)
	if err != nil {
		return err
	}
	return x.reply(map[string]string{"prompt": text})
}
