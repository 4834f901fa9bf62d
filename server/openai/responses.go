package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"grove/internal/options"
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
	Truncation   *string             `json:"truncation" bytes:"256"`
	Background   bool                `json:"background"`

	Text struct {
		Format    *structured.Format `json:"format"`
		Verbosity *string            `json:"verbosity" bytes:"256"`
	} `json:"text"`
	Reasoning *struct {
		Effort  *string `json:"effort" bytes:"256"`
		Summary *string `json:"summary" bytes:"256"`
	} `json:"reasoning"`

	made responseParts
}

// responseParts are made of a request's fields.
type responseParts struct {
	offers       *offers
	choice       json.RawMessage // of the tools as the model sees them
	conversation []message       // without the instructions
	left         []string        // what the answer does without
	task         *task           // that computes the answer in the background; nil: it is not
}

// Tolerated implements [wire.Tolerant].
func (responsesRequest) Tolerated() []wire.Toleration {
	return chatFields
}

// stores reports whether the answer is stored.
func (q *responsesRequest) stores() bool { return q.Store == nil || *q.Store }

// included are the values of include that are honoured or ask for what no answer has.
var included = []string{
	includeThoughts, includeLogprobs, "file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
	"message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
}

const (
	includeThoughts = "reasoning.encrypted_content"
	includeLogprobs = "message.output_text.logprobs"
)

// includes reports whether include names a part of the answer.
func (q *responsesRequest) includes(what string) bool { return slices.Contains(q.Include, what) }

// parse reads the parts of the request that are not fields alone: what it goes on from, its tools and its items.
func (q *responsesRequest) parse(x *driver.Request) (*chatRequest, error) {
	var earlier []message
	if q.Previous != nil {
		r, err := stored(x, *q.Previous, "previous_response_id")
		if err != nil {
			return nil, err
		}
		if r.messages == nil {
			return nil, wire.Refuse("previous_response_id", "the response %q is not completed", wire.Clip(*q.Previous))
		}
		earlier = r.messages
	}
	var toolsErr, choiceErr error
	if q.made.offers, toolsErr = q.offer(); toolsErr == nil {
		q.made.choice, choiceErr = q.made.offers.choice(q.Choice)
	}
	read, inputErr := q.messages(x, earlier)
	err := wire.All(append(q.refusals(), toolsErr, choiceErr, inputErr)...)
	if err != nil {
		return nil, err
	}
	q.made.left = slices.Concat(q.made.left, q.made.offers.left, read.left)
	q.made.conversation = read.all
	return q.chat(read.origins), x.LeaveOut(q.made.left)
}

// refusals returns what is wrong with single fields, and notes what the answer does without.
func (q *responsesRequest) refusals() (all []error) {
	for i, what := range q.Include {
		switch at := fmt.Sprintf("include[%d]", i); {
		case slices.Contains(included, what):
		case options.Misspelt(what, included):
			all = append(all, wire.Refuse("include", "%s: %q is not known%s", at, wire.Clip(what), options.NearHint(what, included)))
		default:
			q.made.left = append(q.made.left, at+" "+wire.Clip(what))
		}
	}
	if q.TimingsPerTok {
		all = append(all, wire.Unsupported("timings_per_token", "this route has no place for them"))
	}
	if t := q.Truncation; t != nil && *t != "auto" && *t != "disabled" {
		all = append(all, wire.Refuse("truncation", "truncation is %q; it must be auto or disabled", wire.Clip(*t)))
	}
	if q.Background && !q.stores() {
		all = append(all, wire.Refuse("background", "background: the answer is read from the store, and store is false"))
	}
	return all
}

// chat returns the request in the form of the chat route.
func (q *responsesRequest) chat(origins []int) *chatRequest {
	c := &chatRequest{Fields: q.Fields, Limits: driver.Limits{MaxTokens: q.MaxTokens}, Format: q.Text.Format}
	c.origins = origins
	if c.Messages = q.made.conversation; q.Instructions != nil && *q.Instructions != "" { // those of earlier requests do not hold
		c.Messages = append([]message{{Role: "system", Content: wire.ContentText{*q.Instructions}}}, c.Messages...)
		c.origins = append([]int{-1}, c.origins...)
	}
	c.Tools, c.Choice, c.Parallel = q.made.offers.list, q.made.choice, q.Parallel
	c.Logprobs = q.includes(includeLogprobs)
	if q.TopLogprobs != nil && *q.TopLogprobs != 0 {
		c.Logprobs, c.TopLogprobs = true, q.TopLogprobs
	}
	if q.Reasoning != nil {
		c.Effort = q.Reasoning.Effort
	}
	return c
}

// responseFieldNames are the names that this route has for fields of the chat route.
var responseFieldNames = map[string]string{"prompt": "input", "messages": "input", "max_tokens": "max_output_tokens", "response_format": "text.format"}

// Parse implements [driver.Body].
func (q *responsesRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	g.FieldNames = responseFieldNames
	c, err := q.parse(g.Request)
	if err != nil {
		return nil, err
	}
	chat, err := q.fit(g, c)
	if err != nil {
		return nil, err
	}
	g.Stored = true // the last event has all of it, too
	e := &responseEncoder{Generation: g, q: q, logprobs: c.Logprobs, status: "in_progress"}
	if q.made.task != nil {
		e.status = "queued"
	}
	e.answer = chat.Answer(g, "0")
	return e, nil
}
