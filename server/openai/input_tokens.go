package openai

import (
	"net/http"

	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// countResponse handles POST /v1/responses/input_tokens: the tokens of the prompt that a request would have.
func countResponse(x *driver.Request) error {
	var q responsesRequest
	h, err := x.Open(&q, &q.Model)
	if err != nil {
		return err
	}
	c, err := q.parse(x)
	if err != nil {
		return err
	}
	return c.count(x, h)
}

// countChat handles POST /v1/chat/completions/input_tokens, a route of llama.cpp.
func countChat(x *driver.Request) error {
	var q chatRequest
	h, err := x.Open(&q, &q.Model)
	if err != nil {
		return err
	}
	return q.count(x, h)
}

// count answers with the number of tokens of the conversation's prompt.
func (q *chatRequest) count(x *driver.Request, h *serving.OpenModel) error {
	c, err := q.chat()
	if err != nil {
		return err
	}
	p, err := x.Prompt(h, &c)
	if err != nil {
		return err
	}
	return x.Reply(map[string]any{"object": "response.input_tokens", "input_tokens": len(p.Tokens)})
}

// compactResponse refuses POST /v1/responses/compact.
func compactResponse(*driver.Request) error {
	return &wire.Error{
		Status: http.StatusNotImplemented, Type: wire.TypeInvalid, Code: "not_supported",
		Message: "/v1/responses/compact: conversations are not compacted; ask for a summary, or use truncation auto",
	}
}
