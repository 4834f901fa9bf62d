package openai

import (
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// envelope are the fields of OpenAI's answers, whole or a part, around their choices.
type envelope struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Created int64            `json:"created"`
	Model   string           `json:"model"`
	System  string           `json:"system_fingerprint"`
	Choices any              `json:"choices"` // a list
	Usage   *serving.Usage   `json:"usage,omitempty"`
	Timings *serving.Timings `json:"timings,omitempty"`
}

// openAI is the part of an encoder that /v1/completions and /v1/chat/completions share: the envelope, and the end of a stream.
type openAI struct {
	*driver.Generation
	answerID string
	object   string // of a whole answer
	part     string // of a part of a stream
	options  *wire.StreamOptions
}

func (e *openAI) envelope(object string, choices any) envelope {
	return envelope{ID: e.answerID, Object: object, Created: e.Created, Model: e.Model.Name, System: driver.Fingerprint, Choices: choices}
}

func (e *openAI) tellsUsage() bool { return e.options != nil && e.options.IncludeUsage }

// send sends a part of an answer. Its usage is null where the last event of the stream has one.
func (e *openAI) send(choice any, so *serving.Timings) error {
	b := e.envelope(e.part, []any{choice})
	b.Timings = so
	if !e.tellsUsage() {
		return e.Out.Send(b)
	}
	return e.Out.Send(struct {
		envelope
		Usage *serving.Usage `json:"usage"`
	}{envelope: b})
}

// whole sends all answers, each of which choice makes when it is written.
func (e *openAI) whole(choice func(i int) (any, error)) error {
	return e.Reply(e.total(e.object, wire.Each(len(e.Job.Answers), choice)))
}

// done ends a stream.
func (e *openAI) done() error {
	if e.tellsUsage() {
		if err := e.Out.Send(e.total(e.part, []any{})); err != nil {
			return err
		}
	}
	return e.Out.Done()
}

// total returns an envelope with the usage and the timings of the request.
func (e *openAI) total(object string, choices any) envelope {
	b := e.envelope(object, choices)
	u, t := e.Spent()
	b.Usage, b.Timings = &u, t
	return b
}
