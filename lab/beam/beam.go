// Package beam answers requests of OpenAI's batch format in pipelines of Apache Beam, on as many machines as a runner has. The answers to a file are those of grove batch, byte
// by byte and but for their order: an answer depends on its line and the model alone, so a bundle that a runner repeats has the same answers.
//
// [Batch] and [Embed] are pipelines from files to files. [Answer] is the transform between them, for pipelines with other sources and sinks.
package beam

import (
	"context"
	"encoding/json"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"grove/server/batch"
)

// Line is a line of requests. Number is its place in the input, from 1: lines differ in it, failures name it, and of several lines with one custom_id that with the smallest
// number is answered.
type Line struct {
	Number int32
	Text   []byte
}

// The metrics are in this namespace. The Go SDK has no histograms: a distribution has a count, a sum, a minimum and a maximum. A bundle that a runner repeats may count twice.
const namespace = "grove"

var (
	requests         = beam.NewCounter(namespace, "requests")
	answered         = beam.NewCounter(namespace, "answers")
	failed           = beam.NewCounter(namespace, "errors")
	promptTokens     = beam.NewCounter(namespace, "prompt_tokens")
	generatedTokens  = beam.NewCounter(namespace, "generated_tokens")
	millisOfRequests = beam.NewDistribution(namespace, "request_milliseconds")
	tokensOfAnswers  = beam.NewDistribution(namespace, "generated_tokens_per_answer")
)

// write counts a result, and emits it as a line of answers or of failures. The goroutine that the SDK calls must call it: neither metrics nor emitters take several.
func write(ctx context.Context, r *batch.Result, answers, failures func(string)) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if code, bad := r.Failed(); bad {
		failed.Inc(ctx, 1)
		beam.NewCounter(namespace, "errors_"+code).Inc(ctx, 1)
		failures(string(line))
		return nil
	}
	answered.Inc(ctx, 1)
	count(ctx, r.Response.Body)
	answers(string(line))
	return nil
}

// count counts the tokens of an answer, by the names of all APIs.
func count(ctx context.Context, body json.RawMessage) {
	var answer struct {
		Usage struct {
			PromptTokens     int64 `json:"prompt_tokens"`
			InputTokens      int64 `json:"input_tokens"`
			CompletionTokens int64 `json:"completion_tokens"`
			OutputTokens     int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return // an answer need not count tokens
	}
	u := answer.Usage
	promptTokens.Inc(ctx, u.PromptTokens+u.InputTokens)
	generatedTokens.Inc(ctx, u.CompletionTokens+u.OutputTokens)
	tokensOfAnswers.Update(ctx, u.CompletionTokens+u.OutputTokens)
}

// timed counts the time of a request, waits included.
func timed(ctx context.Context, took time.Duration) {
	millisOfRequests.Update(ctx, took.Milliseconds())
}
