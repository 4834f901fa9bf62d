package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"grove/server/driver"
	"grove/server/structured"
	"grove/server/wire"
)

// responsesRequest is the body of /v1/responses. It has the whole conversation, or goes on from a stored answer.
type responsesRequest struct {
	driver.Fields

	Input        input               `json:"input" most:"16384"`
	Instructions *string             `json:"instructions"`
	MaxTokens    *int                `json:"max_output_tokens" range:"-1 * no bound"`
	Tools        []responseTool      `json:"tools" most:"1024"`
	Choice       json.RawMessage     `json:"tool_choice"`
	Parallel     *bool               `json:"parallel_tool_calls"`
	TopLogprobs  *int                `json:"top_logprobs" range:"0 20"`
	Include      []string            `json:"include" most:"64" bytes:"256"`
	Options      *wire.StreamOptions `json:"stream_options"`
	Metadata     map[string]string   `json:"metadata" most:"16" bytes:"2048"`
	Previous     *string             `json:"previous_response_id" bytes:"256"`
	Store        *bool               `json:"store"` // absent: true

	Text struct {
		Format    *structured.Format `json:"format"`
		Verbosity *string            `json:"verbosity" bytes:"256"`
	} `json:"text"`
	Reasoning *struct {
		Effort  *string `json:"effort" bytes:"256"`
		Summary *string `json:"summary" bytes:"256"`
	} `json:"reasoning"`

	conversation []message // without the instructions
}

// Tolerated implements [wire.Tolerant].
func (responsesRequest) Tolerated() []wire.Toleration {
	return chatFields
}

// responseTool is a function that may be called.
type responseTool struct {
	Type        string          `json:"type" bytes:"256"`
	Name        string          `json:"name" bytes:"1024"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// function returns the tool in the form of the chat route, with the fields in the order of their names.
func (t *responseTool) function() (json.RawMessage, error) {
	if t.Type != "function" {
		return nil, wire.Unsupported("tools", "a tool of type "+strconv.Quote(wire.Clip(t.Type))+": functions are supported")
	}
	var f struct {
		Function struct {
			Description *string         `json:"description,omitempty"`
			Name        string          `json:"name"`
			Parameters  json.RawMessage `json:"parameters,omitempty"`
			Strict      bool            `json:"strict,omitempty"`
		} `json:"function"`
		Type string `json:"type"`
	}
	f.Type = t.Type
	f.Function.Description, f.Function.Name, f.Function.Parameters = t.Description, t.Name, t.Parameters
	f.Function.Strict = t.Strict != nil && *t.Strict
	raw, err := wire.Marshal(f)
	if err != nil {
		return nil, wire.Refuse("tools", "%v", err)
	}
	return raw, nil
}

// input is a text, or items of a conversation.
type input []inputItem

// inputItem is a message, a call, or the output of a call.
type inputItem struct {
	Type      string           `json:"type" bytes:"256"`
	ID        string           `json:"id" bytes:"1024"`
	Status    string           `json:"status" bytes:"256"`
	Role      string           `json:"role" bytes:"256"`
	Content   wire.ContentText `json:"content" most:"65536"`
	CallID    string           `json:"call_id" bytes:"65536"`
	Name      string           `json:"name" bytes:"1024"`
	Arguments string           `json:"arguments" holds:"json"`
	Output    wire.ContentText `json:"output" most:"65536"`
	Summary   json.RawMessage  `json:"summary"` // of thoughts; the thoughts themselves are the content
}

// ReadJSON implements [wire.Own].
func (l *input) ReadJSON(r *wire.Reader) error {
	if r.Kind() != jsontext.KindString {
		return r.Into((*[]inputItem)(l))
	}
	text, err := r.Text()
	*l = input{{Role: "user", Content: wire.ContentText{text}}}
	return err
}

// Like implements [wire.Like].
func (input) Like() any { return []inputItem{} }

// Tolerated implements [wire.Tolerant].
func (inputItem) Tolerated() []wire.Toleration { return wire.MessageFields }

// stores reports whether the answer is stored.
func (q *responsesRequest) stores() bool { return q.Store == nil || *q.Store }

// messages returns the conversation behind earlier messages, and the item that each begins with, -1 for the earlier: consecutive calls,
// and an answer before them, are one message.
func (q *responsesRequest) messages(earlier []message) (all []message, origins []int, err error) {
	all, origins = slices.Clone(earlier), slices.Repeat([]int{-1}, len(earlier))
	for i, item := range q.Input {
		switch item.Type {
		case "", "message":
			if n := len(all) - 1; item.Role == "assistant" && i > 0 && q.Input[i-1].Type == "reasoning" {
				all[n].Content = item.Content
				continue
			}
			all = append(all, message{Role: item.Role, Content: item.Content})
		case "reasoning": // of the message or the calls behind it
			all = append(all, message{Role: "assistant", Reasoning: item.Content.Text()})
		case "function_call":
			call := toolCall{ID: item.CallID, Type: "function"}
			call.Function.Name, call.Function.Arguments = item.Name, item.Arguments
			if n := len(all) - 1; i == 0 || n < 0 || all[n].Role != "assistant" {
				all = append(all, message{Role: "assistant"})
			}
			last := &all[len(all)-1] // not a stored one, which does not change: the first item begins a message
			last.ToolCalls = append(last.ToolCalls, call)
		case "function_call_output":
			all = append(all, message{Role: "tool", ToolCallID: item.CallID, Content: item.Output})
		default:
			return nil, nil, wire.Refuse(fmt.Sprintf("input[%d]", i), "input[%d] has the type %q; messages, reasoning, function calls and their outputs are supported", i, wire.Clip(item.Type))
		}
		if len(all) > len(origins) {
			origins = append(origins, i)
		}
	}
	return all, origins, nil
}

// chat returns the request in the form of the chat route.
func (q *responsesRequest) chat(earlier []message) (*chatRequest, error) {
	c := &chatRequest{Fields: q.Fields, Limits: driver.Limits{MaxTokens: q.MaxTokens}, Format: q.Text.Format}
	var err error
	if q.conversation, c.origins, err = q.messages(earlier); err != nil {
		return nil, err
	}
	if c.Messages = q.conversation; q.Instructions != nil && *q.Instructions != "" { // those of earlier requests do not hold
		c.Messages = append([]message{{Role: "system", Content: wire.ContentText{*q.Instructions}}}, c.Messages...)
		c.origins = append([]int{-1}, c.origins...)
	}
	c.Choice, c.Parallel = q.Choice, q.Parallel
	for _, t := range q.Tools {
		raw, err := t.function()
		if err != nil {
			return nil, err
		}
		c.Tools = append(c.Tools, raw)
	}
	for _, what := range q.Include {
		if what != "message.output_text.logprobs" {
			return nil, wire.Unsupported("include", strconv.Quote(wire.Clip(what))+" is not supported")
		}
		c.Logprobs = true
	}
	if q.TopLogprobs != nil && *q.TopLogprobs != 0 {
		c.Logprobs, c.TopLogprobs = true, q.TopLogprobs
	}
	switch {
	case q.TimingsPerTok:
		return nil, wire.Unsupported("timings_per_token", "this route has no place for them")
	case q.Text.Verbosity != nil && *q.Text.Verbosity != "medium":
		return nil, wire.Unsupported("text.verbosity", "it is not supported")
	case q.Reasoning != nil && q.Reasoning.Summary != nil:
		return nil, wire.Unsupported("reasoning.summary", "it is not supported")
	case q.Reasoning != nil:
		c.Effort = q.Reasoning.Effort
	}
	return c, nil
}

// responseFieldNames are the names that this route has for fields of the chat route.
var responseFieldNames = map[string]string{"prompt": "input", "messages": "input", "max_tokens": "max_output_tokens", "response_format": "text.format"}

// Parse implements [driver.Body].
func (q *responsesRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	g.FieldNames = responseFieldNames
	var earlier []message
	if q.Previous != nil {
		r, err := stored(g.Request, *q.Previous, "previous_response_id")
		if err != nil {
			return nil, err
		}
		earlier = r.messages
	}
	c, err := q.chat(earlier)
	if err != nil {
		return nil, err
	}
	chat, err := c.prompt(g)
	if err != nil {
		return nil, err
	}
	g.Stored = true // the last event has all of it, too
	e := &responseEncoder{Generation: g, q: q, logprobs: c.Logprobs, status: "in_progress"}
	e.answer = chat.Answer(g, "0")
	return e, nil
}
