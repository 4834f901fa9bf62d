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

// block is a part of a message: of type text, thinking, redacted_thinking, tool_use, tool_result, document or search_result.
type block struct {
	Type      string          `json:"type" bytes:"256"`
	Text      *string         `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id" bytes:"1024"`
	Name      string          `json:"name" bytes:"1024"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id" bytes:"1024"`
	Content   content         `json:"content" most:"16384"` // of a result, or of a search's
	Source    source          `json:"source"`               // of a document, an image or a search's result
	Title     string          `json:"title"`
	Context   string          `json:"context"`
	ToolName  string          `json:"tool_name" bytes:"1024"` // of a reference
}

// Tolerated implements [wire.Tolerant].
func (block) Tolerated() []wire.Toleration {
	return []wire.Toleration{
		{Names: "signature data", Values: "*", Client: "Claude Code", Reason: "they are of thoughts that Anthropic signed"},
		{Names: "is_error", Values: "*", Client: "Claude Code", Reason: "templates have no place for it; the result says it"},
		{Names: "cache_control caller", Values: "*", Client: "Claude Code", Reason: "they describe the block"},
		{Names: "citations", Values: "*", Client: "Anthropic", Reason: "they are notes on a text that is there"},
	}
}

// source is where a document comes from: its text, blocks of text, or the address of a search's result.
type source struct {
	Type    string  `json:"type" bytes:"256"`
	Media   string  `json:"media_type" bytes:"256"`
	Data    string  `json:"data"`
	Content content `json:"content" most:"16384"`
	URL     string  `json:"url" bytes:"4096"`
	File    string  `json:"file_id" bytes:"1024"`
}

// ReadJSON implements [wire.Own].
func (s *source) ReadJSON(r *wire.Reader) (err error) {
	if r.Kind() == jsontext.KindString {
		s.URL, err = r.Text()
		return err
	}
	return r.Into((*sourceFields)(s))
}

type sourceFields source // it does not read itself

// Like implements [wire.Like].
func (source) Like() any { return sourceFields{} }

// written returns the text of a block that is read as text, with the title of a document before it.
func (b *block) written() (text string, err error) {
	switch b.Type {
	case "text":
		if b.Text == nil {
			return "", errors.New("a block of type \"text\" has no text")
		}
		return *b.Text, nil
	case "tool_reference":
		return b.ToolName, nil
	case "search_result":
		return b.titled(b.Content, b.Source.URL)
	case "document":
		switch b.Source.Type {
		case "text":
			return b.titled(content{{Type: "text", Text: &b.Source.Data}})
		case "content":
			return b.titled(b.Source.Content)
		}
		return "", fmt.Errorf("a document of type %q (%s): plain text (type text) and blocks of text (type content) are supported", wire.Clip(b.Source.Type), wire.Clip(b.Source.Media))
	}
	return "", fmt.Errorf("a block of type %q: text and documents of text are supported here", wire.Clip(b.Type))
}

// titled returns texts behind the title, the context and further lines, where there are some.
func (b *block) titled(texts content, further ...string) (string, error) {
	var lines []string
	for _, line := range append([]string{b.Title, b.Context}, further...) {
		if line != "" {
			lines = append(lines, line)
		}
	}
	for i := range texts {
		text, err := texts[i].written()
		if err != nil {
			return "", err
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n"), nil
}

// ReadJSON implements [wire.Own].
func (c *content) ReadJSON(r *wire.Reader) error {
	if r.Kind() != jsontext.KindString {
		return r.Into((*[]block)(c))
	}
	text, err := r.Text()
	*c = content{{Type: "text", Text: &text}}
	return err
}

// Like implements [wire.Like].
func (content) Like() any { return []block{} }

// text returns the texts of blocks that are read as text.
func (c content) text(field string) (parts wire.ContentText, err error) {
	for i := range c {
		text, err := c[i].written()
		if err != nil {
			return nil, wire.Refuse(field, "%v", err)
		}
		parts = append(parts, text)
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
	case "system": // a note of the client in the middle of the conversation
		text, err := m.Content.text("messages")
		return []grove.Message{{Role: "system", Content: text.Text(), Parts: text}}, err
	}
	return nil, fmt.Errorf("the role is %q; it must be user, assistant or system", wire.Clip(m.Role))
}

// user returns the results of tools and the texts of a message, in their order.
func (m *message) user() (all []grove.Message, err error) {
	if len(m.Content) == 0 {
		return nil, errors.New("it is empty")
	}
	var texts wire.ContentText
	flush := func() {
		if len(texts) > 0 {
			all = append(all, grove.Message{Role: "user", Content: texts.Text(), Parts: texts})
			texts = nil
		}
	}
	for i := range m.Content {
		b := &m.Content[i]
		if b.Type != "tool_result" {
			text, err := b.written()
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
			continue
		}
		flush()
		text, err := b.Content.text("messages")
		if err != nil {
			return nil, err
		}
		all = append(all, grove.Message{Role: "tool", ToolCallID: b.ToolUseID, Content: text.Text(), Parts: text})
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
