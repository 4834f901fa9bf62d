package traces

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"grove"
)

// The operations of [Answer].
const (
	Chat       = "chat"
	Completion = "text_completion"
)

// Answer is an answer that has ended.
type Answer struct {
	Operation string // [Chat] or [Completion]
	Model     string
	ID        string // of its request
	Request   grove.Request
	Stats     grove.Stats
	Reason    string // why it ended, in OpenAI's words
	Start     time.Time
	Fault     string // the code of the error by which it failed; "": none
}

// Report makes the spans of an answer, below the span of a context. Where that is not recorded it does nothing. get is called
// where it does something.
func Report(ctx context.Context, get func() Answer) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return
	}
	a := get()
	end := time.Now()
	tracer := parent.TracerProvider().Tracer(scope)
	ctx, span := tracer.Start(ctx, a.Operation+" "+a.Model, trace.WithTimestamp(a.Start), trace.WithAttributes(a.attributes()...))
	at := a.Start
	for _, part := range a.parts(end) {
		if part.took <= 0 {
			continue
		}
		_, s := tracer.Start(ctx, part.name, trace.WithTimestamp(at), trace.WithAttributes(part.attributes...))
		at = at.Add(part.took)
		s.End(trace.WithTimestamp(at))
	}
	if a.Fault != "" {
		span.SetStatus(codes.Error, a.Fault)
	}
	span.End(trace.WithTimestamp(end))
}

// part is a stretch of an answer's time.
type part struct {
	name       string
	took       time.Duration
	attributes []attribute.KeyValue
}

// parts returns the stretches of the answer's time, in order.
func (a *Answer) parts(end time.Time) []part {
	s, d := &a.Stats, &a.Stats.Drafting
	rest := end.Sub(a.Start) - s.QueueTime - s.PromptTime
	return []part{
		{"queue", s.QueueTime, nil},
		{"prompt", s.PromptTime, []attribute.KeyValue{attribute.Int("grove.prompt.computed_tokens", s.PromptTokens-s.ReusedTokens), attribute.Int("grove.prompt.cached_tokens", s.ReusedTokens)}},
		{"rounds", rest, []attribute.KeyValue{
			attribute.Int("grove.rounds", d.Rounds), attribute.Int("grove.drafted_tokens", d.Drafted), attribute.Int("grove.accepted_tokens", d.Accepted), attribute.Int("gen_ai.usage.output_tokens", s.Tokens),
		}},
	}
}

// attributes returns what the span of the answer says, by the conventions for generative AI.
func (a *Answer) attributes() []attribute.KeyValue {
	r, s := &a.Request, &a.Stats
	all := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", a.Operation), attribute.String("gen_ai.provider.name", "grove"),
		attribute.String("gen_ai.request.model", a.Model), attribute.String("gen_ai.response.model", a.Model), attribute.String("gen_ai.response.id", a.ID),
		attribute.Int64("gen_ai.request.seed", int64(s.Seed)), attribute.Int("gen_ai.request.choice", r.SampleIndex),
		attribute.Float64("gen_ai.request.temperature", float64(r.Sampling.Temperature)),
		attribute.Float64("gen_ai.request.top_p", float64(r.Sampling.AskedTopP())), attribute.Float64("gen_ai.request.top_k", float64(r.Sampling.TopK)),
		attribute.Int("gen_ai.usage.input_tokens", s.PromptTokens), attribute.Int("gen_ai.usage.output_tokens", s.Tokens),
		attribute.Float64("gen_ai.server.time_to_first_token", s.FirstTokenTime.Seconds()), attribute.Float64("gen_ai.server.time_in_queue", s.QueueTime.Seconds()),
		attribute.String("grove.grade", string(s.Grade)),
	}
	if r.MaxTokens > 0 {
		all = append(all, attribute.Int("gen_ai.request.max_tokens", r.MaxTokens))
	}
	if a.Fault != "" {
		all = append(all, attribute.String("error.type", a.Fault))
	} else {
		all = append(all, attribute.StringSlice("gen_ai.response.finish_reasons", []string{a.Reason}))
	}
	if r.Search == "" {
		return all
	}
	all = append(all, attribute.String("grove.search", r.Search), attribute.Int("grove.search.attempts", len(s.Attempts)))
	for _, name := range slices.Sorted(maps.Keys(s.Figures)) {
		all = append(all, attribute.Float64("grove.search."+name, s.Figures[name]))
	}
	return all
}
