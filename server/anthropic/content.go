package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
	"grove/internal/text/chat"
	"grove/server/wire"
)

// content is a text, or a list of blocks.
type content []block

// block is a part of a message: of type text, thinking, redacted_thinking, tool_use or tool_result.
type block struct {
	Type      string          `json:"type" bytes:"256"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id" bytes:"65536"`
	Name      string          `json:"name" bytes:"1024"`
	Input     json.RawMessage `json:"input" holds:"json"`
	ToolUseID string          `json:"tool_use_id" bytes:"65536"`
	Content   content         `json:"content" most:"16384"` // of a result

	// These change nothing: signatures are of thoughts that Anthropic signed, is_error is for a reader of the conversation (a
	// template has no place for it), citations are notes on a text that is there.
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	IsError   bool            `json:"is_error"`
	Cache     json.RawMessage `json:"cache_control"`
	Citations json.RawMessage `json:"citations"`
	Caller    json.RawMessage `json:"caller"`

	Source json.RawMessage `json:"source"` // of an image or a document, which are refused
	Title  json.RawMessage `json:"title"`
}

// ReadJSON implements [wire.Own].
func (c *content) ReadJSON(r *wire.Reader) error {
	if r.Kind() != jsontext.KindString {
		return r.Into((*[]block)(c))
	}
	text, err := r.Text()
	*c = content{{Type: "text", Text: text}}
	return err
}

// Like implements [wire.Like].
func (content) Like() any { return []block{} }

// text returns the texts of blocks of type text.
func (c content) text(field string) (parts wire.ContentText, err error) {
	for _, b := range c {
		if b.Type != "text" {
			return nil, wire.Refuse(field, "a block of type %q: text alone is supported here", wire.Clip(b.Type))
		}
		parts = append(parts, b.Text)
	}
	return parts, nil
}

// messages returns the messages that a message of this API makes: each result of a tool is one.
func (m *message) messages() ([]grove.Message, error) {
	switch m.Role {
	case "user":
		return m.user()
	case "assistant":
		one, err := m.assistant()
		return []grove.Message{one}, err
	}
	return nil, fmt.Errorf("the role is %q; it must be user or assistant", wire.Clip(m.Role))
}

// user returns the results of tools and the texts of a message, in their order.
func (m *message) user() (all []grove.Message, err error) {
	if len(m.Content) == 0 {
		return nil, errors.New("it is empty")
	}
	var texts content
	flush := func() {
		if len(texts) > 0 {
			text, _ := texts.text("messages") // they are texts
			all = append(all, grove.Message{Role: "user", Content: text.Text(), Parts: text})
			texts = nil
		}
	}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			texts = append(texts, b)
		case "tool_result":
			flush()
			text, err := b.Content.text("messages")
			if err != nil {
				return nil, err
			}
			all = append(all, grove.Message{Role: "tool", ToolCallID: b.ToolUseID, Content: text.Text(), Parts: text})
		default:
			return nil, fmt.Errorf("a block of type %q; text and tool_result are supported in a message of the user", wire.Clip(b.Type))
		}
	}
	flush()
	return all, nil
}

// assistant returns an answer.
func (m *message) assistant() (one grove.Message, err error) {
	one.Role = "assistant"
	var texts content
	var thoughts []string
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			texts = append(texts, b)
		case "thinking":
			thoughts = append(thoughts, b.Thinking)
		case "redacted_thinking":
		case "tool_use":
			call := chat.ToolCall{ID: b.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = b.Name, b.Input
			one.ToolCalls = append(one.ToolCalls, call)
		default:
			return one, fmt.Errorf("a block of type %q; text, thinking and tool_use are supported in an answer", wire.Clip(b.Type))
		}
	}
	one.Reasoning = strings.Join(thoughts, "")
	one.Parts, err = texts.text("messages")
	one.Content = strings.Join(one.Parts, "\n")
	return one, err
}
