package server

import (
	"encoding/json"
	"strconv"

	"grove/server/serving"
	"grove/server/wire"
)

// responsesRequest is the body of /v1/responses. Nothing is stored: a conversation comes whole with each request.
type responsesRequest struct {
	wire.Sampling

	Model        string              `json:"model"`
	Input        input               `json:"input"`
	Instructions *string             `json:"instructions"`
	MaxTokens    *int                `json:"max_output_tokens"`
	Tools        []responseTool      `json:"tools"`
	Choice       json.RawMessage     `json:"tool_choice"`
	Parallel     *bool               `json:"parallel_tool_calls"`
	TopLogprobs  *int                `json:"top_logprobs"`
	Include      []string            `json:"include"`
	Stream       bool                `json:"stream"`
	Options      *wire.StreamOptions `json:"stream_options"`
	Prediction   *wire.Prediction    `json:"prediction"`
	Metadata     map[string]string   `json:"metadata"`

	Text struct {
		Format    *wire.Format `json:"format"`
		Verbosity *string      `json:"verbosity"`
	} `json:"text"`
	Reasoning *struct {
		Effort  *string `json:"effort"`
		Summary *string `json:"summary"`
	} `json:"reasoning"`
}

// responseTool is a function that may be called.
type responseTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// input is a text, or items of a conversation.
type input []inputItem

// inputItem is a message, a call, or what a call gave.
type inputItem struct {
	Type      string           `json:"type"`
	ID        string           `json:"id"`
	Status    string           `json:"status"`
	Role      string           `json:"role"`
	Content   wire.ContentText `json:"content"`
	CallID    string           `json:"call_id"`
	Name      string           `json:"name"`
	Arguments string           `json:"arguments"`
	Output    wire.ContentText `json:"output"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *input) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*l = input{{Role: "user", Content: wire.ContentText(text)}}
		return nil
	}
	return wire.DecodeField("input", b, (*[]inputItem)(l))
}

// messages returns the conversation: calls that follow each other, and an answer before them, are one message.
func (q *responsesRequest) messages() (all []message, err error) {
	if q.Instructions != nil && *q.Instructions != "" {
		all = append(all, message{Role: "system", Content: wire.ContentText(*q.Instructions)})
	}
	for i, item := range q.Input {
		switch item.Type {
		case "", "message":
			all = append(all, message{Role: item.Role, Content: item.Content})
		case "function_call":
			call := toolCall{ID: item.CallID, Type: "function"}
			call.Function.Name, call.Function.Arguments = item.Name, item.Arguments
			if n := len(all) - 1; i == 0 || n < 0 || all[n].Role != "assistant" {
				all = append(all, message{Role: "assistant"})
			}
			last := &all[len(all)-1]
			last.ToolCalls = append(last.ToolCalls, call)
		case "function_call_output":
			all = append(all, message{Role: "tool", ToolCallID: item.CallID, Content: item.Output})
		default:
			return nil, wire.Refuse("input", "input: item %d has the type %q; messages, function calls and their outputs are supported", i, wire.Clip(item.Type))
		}
	}
	return all, nil
}

// chat returns the request as the chat route has it.
func (q *responsesRequest) chat() (*chatRequest, error) {
	c := &chatRequest{Sampling: q.Sampling, Model: q.Model, MaxTokens: q.MaxTokens, Stream: q.Stream, Format: q.Text.Format, Prediction: q.Prediction}
	var err error
	if c.Messages, err = q.messages(); err != nil {
		return nil, err
	}
	c.Choice, c.Parallel = q.Choice, q.Parallel
	for _, t := range q.Tools {
		if t.Type != "function" {
			return nil, wire.Unsupported("tools", "a tool of type "+strconv.Quote(wire.Clip(t.Type))+": functions are supported")
		}
		function := map[string]any{"name": t.Name}
		if t.Parameters != nil {
			function["parameters"] = t.Parameters
		}
		if t.Description != nil {
			function["description"] = *t.Description
		}
		if t.Strict != nil && *t.Strict {
			function["strict"] = true
		}
		raw, err := wire.Marshal(map[string]any{"type": "function", "function": function})
		if err != nil {
			return nil, wire.Refuse("tools", "%v", err)
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
	return c, q.Options.Check(q.Stream)
}

// responses handles POST /v1/responses.
func (s *Server) responses(x *exchange) error {
	q := new(responsesRequest)
	if err := s.read(x, q); err != nil {
		return err
	}
	request, err := q.chat()
	if err != nil {
		return err
	}
	h, err := x.host(q.Model)
	if err != nil {
		return err
	}
	c := &chatReply{chatRequest: request, x: x, host: h, created: unix()}
	if err := c.prepare(); err != nil {
		e := wire.ErrorOf(err)
		for from, to := range map[string]string{"messages": "input", "max_tokens": "max_output_tokens", "response_format": "text.format"} {
			if e.Param == from {
				e.Param = to
			}
		}
		return e
	}
	defer c.job.Close()
	r := &response{chatReply: c, request: q, id: "resp_" + x.id, status: "in_progress"}
	if !q.Stream {
		if err := c.job.Run(func(e serving.Event) error { return r.take(e, nil) }); err != nil {
			return err
		}
		return x.reply(r.body())
	}
	out := x.stream()
	if err := r.stream(out); err != nil {
		if x.sent != 0 && x.r.Context().Err() == nil {
			e := wire.ErrorOf(err)
			_ = r.send(out, "error", map[string]any{"code": e.Code, "message": e.Message, "param": nil}) // the client may have gone
		}
		return err
	}
	return nil
}
