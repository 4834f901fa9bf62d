package driver

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"grove"
	"grove/server/serving"
	"grove/server/toolcall"
	"grove/server/wire"
	"grove/text/chat"
	"grove/text/token"
)

// Chat is a conversation to answer.
type Chat struct {
	Messages  []grove.Message
	Options   grove.ChatOptions
	Functions []string // names of those that may be called
}

// SetVar sets a variable of the template. The variables of the request stay as they are.
func (c *Chat) SetVar(name string, value json.RawMessage) {
	if c.Options.Vars = maps.Clone(c.Options.Vars); c.Options.Vars == nil {
		c.Options.Vars = map[string]json.RawMessage{}
	}
	c.Options.Vars[name] = value
}

// CheckSizes refuses conversations with too many messages or tools.
func CheckSizes(messages, tools int) error {
	switch {
	case messages == 0:
		return wire.Refuse("messages", "there is no message")
	case messages > wire.MaxMessages:
		return wire.Refuse("messages", "%d messages; at most %d", messages, wire.MaxMessages)
	case tools > wire.MaxTools:
		return wire.Refuse("tools", "%d tools; at most %d", tools, wire.MaxTools)
	}
	return nil
}

// UseTools sets the tools that may be called, in the form of OpenAI's API.
func (c *Chat) UseTools(tools []json.RawMessage) error {
	for i, raw := range tools {
		var tool struct {
			Type     string `json:"type"`
			Function struct {
				Name   string `json:"name"`
				Strict bool   `json:"strict"`
			} `json:"function"`
		}
		switch err := json.Unmarshal(raw, &tool); {
		case err != nil || tool.Type != "function" || tool.Function.Name == "":
			return wire.Refuse("tools", "tool %d is not a function with a name", i)
		case tool.Function.Strict:
			return wire.Unsupported("tools", wire.NoGrammar+", and arguments that keep to a schema (strict) could not be promised")
		case slices.Contains(c.Functions, tool.Function.Name):
			return wire.Refuse("tools", "two tools are called %q", wire.Clip(tool.Function.Name))
		}
		c.Functions = append(c.Functions, tool.Function.Name)
	}
	c.Options.Tools = tools
	return nil
}

// Prompt returns the prompt that the model's template makes of the conversation. Its errors are the request's fault.
func (c *Chat) Prompt(h *serving.Host) (grove.ChatPrompt, error) {
	p, err := h.Model.ApplyTemplate(c.Messages, c.Options)
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

// Call is a call of a tool in an answer.
type Call struct {
	ID string
	toolcall.Call
}

// Answer is the answer to a conversation under way: its text and its calls.
type Answer struct {
	Content strings.Builder
	Calls   []Call
	reader  toolcall.Reader
}

// Answer returns an answer without tokens, of the given number among those of the request.
func (c *Chat) Answer(g *Generation, number string) *Answer {
	return &Answer{reader: toolcall.Reader{Names: c.Functions, ID: g.ID + "/" + number}}
}

// Add adds a token, and returns the new text and the new calls.
func (a *Answer) Add(h *serving.Host, t grove.Token) (content string, calls []Call) {
	text := t.Text
	if t.ID != token.None {
		if piece, _ := h.Piece(t.ID); toolcall.IsMarker(piece) && !strings.Contains(text, piece) {
			text += piece
		}
	}
	return a.keep(a.reader.Add(text))
}

// Close ends the answer, and returns the text and the calls that were held back.
func (a *Answer) Close() (content string, calls []Call) { return a.keep(a.reader.End()) }

// keep adds text and calls to the answer. White space between calls and behind them is dropped.
func (a *Answer) keep(content string, found []toolcall.Call) (string, []Call) {
	var calls []Call
	for _, f := range found {
		calls = append(calls, Call{ID: a.reader.NextID(), Call: f})
	}
	a.Calls = append(a.Calls, calls...)
	if len(a.Calls) > 0 && strings.TrimSpace(content) == "" {
		content = ""
	}
	a.Content.WriteString(content)
	return content, calls
}

// Numbers returns bytes as JSON shows them.
func Numbers(raw []byte) []int {
	n := make([]int, len(raw))
	for i, b := range raw {
		n[i] = int(b)
	}
	return n
}
