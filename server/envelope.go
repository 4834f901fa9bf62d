package server

import (
	"grove/server/serving"
	"grove/server/wire"
)

// envelope is what OpenAI's answers, whole or a part, have around their choices.
type envelope[C any] struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Created int64            `json:"created"`
	Model   string           `json:"model"`
	System  string           `json:"system_fingerprint"`
	Choices []C              `json:"choices"`
	Usage   *serving.Usage   `json:"usage,omitempty"`
	Timings *serving.Timings `json:"timings,omitempty"`
}

// part is the envelope as a part of a stream: it has a usage of null where the last one tells it.
func (b envelope[C]) part(o *wire.StreamOptions) any {
	if o == nil || !o.IncludeUsage {
		return b
	}
	return struct {
		envelope[C]
		Usage *serving.Usage `json:"usage"`
	}{envelope: b}
}
