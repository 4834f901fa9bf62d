package openai

import (
	"encoding/json"

	"grove"
	"grove/internal/text/answer"
	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// responseEncoder writes the answer of /v1/responses: items, of which the last one may be a message that goes on.
type responseEncoder struct {
	*driver.Generation
	q        *responsesRequest
	logprobs bool
	answer   *driver.Answer
	status   string
	failure  map[string]string // why it failed; nil: it did not
	items    []*responseItem
	sequence int // number of the next event
	usage    *responseUsage
	timings  *serving.Timings // of the whole answer; nil: it goes on
}

type responseUsage struct {
	Input        int            `json:"input_tokens"`
	InputDetail  map[string]int `json:"input_tokens_details"`
	Output       int            `json:"output_tokens"`
	OutputDetail map[string]int `json:"output_tokens_details"`
	Total        int            `json:"total_tokens"`
}

// response returns the answer as it stands.
func (e *responseEncoder) response() map[string]any {
	q, settings := e.q, e.Job.Answers[0].Request()
	var incomplete any
	if e.status == "incomplete" {
		incomplete = map[string]string{"reason": "max_output_tokens"}
	}
	choice, tools, metadata := any("auto"), q.Tools, q.Metadata
	text, reasoning, truncation := map[string]any{"format": map[string]string{"type": "text"}}, map[string]any{"effort": nil, "summary": nil}, "disabled"
	if q.Choice != nil {
		choice = q.Choice
	}
	if tools == nil {
		tools = []responseTool{}
	}
	if metadata == nil {
		metadata = map[string]string{}
	}
	if q.Reasoning != nil {
		reasoning = map[string]any{"effort": q.Reasoning.Effort, "summary": q.Reasoning.Summary}
	}
	if q.Text.Verbosity != nil {
		text["verbosity"] = q.Text.Verbosity
	}
	if q.Truncation != nil {
		truncation = *q.Truncation
	}
	all := map[string]any{
		"id": "resp_" + e.ID, "object": "response", "created_at": e.Created, "status": e.status, "model": e.Model.Name,
		"output": append([]*responseItem{}, e.items...), "usage": e.usage, "error": e.failure, "incomplete_details": incomplete,
		"instructions": q.Instructions, "max_output_tokens": q.MaxTokens, "temperature": settings.Sampling.Temperature, "top_p": settings.Sampling.AskedTopP(),
		"tools": tools, "tool_choice": choice, "parallel_tool_calls": q.Parallel == nil || *q.Parallel, "text": text,
		"reasoning": reasoning, "metadata": metadata, "store": q.stores(), "background": q.Background,
		"previous_response_id": q.Previous, "truncation": truncation, "service_tier": "default", "seed": settings.Sampling.Seed,
	}
	if t := e.timings; t != nil && t.Grade != "" {
		all["grade"] = t.Grade
		if t.Search != nil {
			all["search"] = t.Search
			all["search_figures"] = t.SearchFigures
		}
	}
	return all
}

// event is an event of a stream.
type event struct {
	kind   string
	fields map[string]any
}

// emit sends events with their numbers where the answer streams.
func (e *responseEncoder) emit(all ...event) error {
	if e.Out == nil && e.q.made.task == nil {
		return nil
	}
	for _, v := range all {
		v.fields["type"], v.fields["sequence_number"] = v.kind, e.sequence
		e.sequence++
		if e.q.made.task != nil {
			if err := e.q.made.task.add(v.kind, v.fields); err != nil {
				return err
			}
			continue
		}
		if err := e.Out.Named(v.kind, v.fields); err != nil {
			return err
		}
	}
	return nil
}

// Begin implements [driver.Encoder].
func (e *responseEncoder) Begin() error {
	if t := e.q.made.task; t != nil {
		if err := e.emit(event{"response.created", map[string]any{"response": e.response()}}, event{"response.queued", map[string]any{"response": e.response()}}); err != nil {
			return err
		}
		return t.begin(e)
	}
	return e.emit(event{"response.created", map[string]any{"response": e.response()}}, event{"response.in_progress", map[string]any{"response": e.response()}})
}

// progress tells that an answer in the background is being computed.
func (e *responseEncoder) progress() error {
	if e.status != "queued" {
		return nil
	}
	e.status = "in_progress"
	if err := e.q.made.task.set(); err != nil {
		return err
	}
	return e.emit(event{"response.in_progress", map[string]any{"response": e.response()}})
}

// Token implements [driver.Encoder].
func (e *responseEncoder) Token(_ int, t grove.Token, _ *serving.Timings) error {
	if err := e.progress(); err != nil {
		return err
	}
	var logprobs []driver.Scored
	if e.logprobs && t.ID != token.None {
		s, err := e.Keep(t)
		if err != nil {
			return err
		}
		logprobs = append(logprobs, s)
	}
	return e.add(e.answer.Add(t), logprobs)
}

// End implements [driver.Encoder].
func (e *responseEncoder) End(answer int) error {
	why, _ := e.Ended(answer)
	if err := e.progress(); err != nil {
		return err
	}
	if err := e.add(e.answer.Close(why), nil); err != nil {
		return err
	}
	if len(e.items) == 0 { // an empty answer is a message, too
		if err := e.say(kindMessage, "", nil); err != nil {
			return err
		}
	}
	e.status = "completed"
	if e.Job.Answers[answer].Stats().Finish != grove.FinishStop {
		e.status = "incomplete"
	}
	return e.endMessage(e.status)
}

// Finish implements [driver.Encoder].
func (e *responseEncoder) Finish() error {
	u, timings := e.Spent()
	e.timings = timings
	e.usage = &responseUsage{
		u.PromptTokens, map[string]int{"cached_tokens": u.PromptDetails.Cached}, u.CompletionTokens, map[string]int{"reasoning_tokens": u.Details.Reasoning}, u.TotalTokens,
	}
	body, err := wire.Marshal(e.response())
	if err == nil {
		err = e.keep(body)
	}
	switch {
	case err != nil:
		return err
	case e.Out == nil && e.q.made.task == nil:
		return e.Reply(json.RawMessage(body))
	}
	return e.emit(event{"response." + e.status, map[string]any{"response": json.RawMessage(body)}})
}

// Fail implements [driver.Encoder].
func (e *responseEncoder) Fail(err *wire.Error) error {
	e.status, e.failure = "failed", map[string]string{"code": err.Label(), "message": err.Message}
	return e.emit(event{"response.failed", map[string]any{"response": e.response()}}, event{"error", map[string]any{"code": err.Code, "message": err.Message, "param": nil}})
}

// add adds parts to the items. The log-probabilities of a token are with its first text.
func (e *responseEncoder) add(parts []answer.Part, logprobs []driver.Scored) error {
	if m, _ := e.open(); len(parts) == 0 && len(logprobs) > 0 && (m == nil || m.Type == kindMessage) {
		return e.say(kindMessage, "", logprobs)
	}
	for _, p := range parts {
		var err error
		switch p.Kind {
		case answer.CallBegin:
			err = e.begin(*p.Call)
		case answer.CallText:
			err = e.argue(p.Text)
		case answer.CallPart:
			err = e.call(*p.Call)
		case answer.Reasoning:
			err = e.say(kindReasoning, p.Text, nil)
		default:
			err = e.say(kindMessage, p.Text, logprobs)
			logprobs = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
