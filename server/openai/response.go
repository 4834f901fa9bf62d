package openai

import (
	"strconv"
	"strings"

	"grove"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/token"
)

// responseEncoder writes the answer of /v1/responses: items, of which the last one may be a message that goes on.
type responseEncoder struct {
	*driver.Generation
	q        *responsesRequest
	logprobs bool
	answer   *driver.Answer
	status   string
	items    []*responseItem
	sequence int // number of the next event
	usage    *responseUsage
	timings  *serving.Timings // of the whole answer; nil: it goes on
}

// responseItem is a message or a call.
type responseItem struct {
	Type      string        `json:"type"`
	ID        string        `json:"id"`
	Status    string        `json:"status"`
	Role      string        `json:"role,omitempty"`
	Content   *[]outputText `json:"content,omitempty"`
	CallID    string        `json:"call_id,omitempty"`
	Name      string        `json:"name,omitempty"`
	Arguments *string       `json:"arguments,omitempty"`

	text     strings.Builder
	logprobs []chatLogprob
}

// outputText is the content of a message.
type outputText struct {
	Type        string        `json:"type"`
	Text        string        `json:"text"`
	Annotations []any         `json:"annotations"`
	Logprobs    []chatLogprob `json:"logprobs"`
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
	choice, tools, metadata, format, effort := any("auto"), q.Tools, q.Metadata, any(map[string]string{"type": "text"}), (*string)(nil)
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
		effort = q.Reasoning.Effort
	}
	all := map[string]any{
		"id": "resp_" + e.ID, "object": "response", "created_at": e.Created, "status": e.status, "model": e.Host.Name,
		"output": append([]*responseItem{}, e.items...), "usage": e.usage, "error": nil, "incomplete_details": incomplete,
		"instructions": q.Instructions, "max_output_tokens": q.MaxTokens, "temperature": settings.Sampling.Temperature, "top_p": settings.Sampling.TopP,
		"tools": tools, "tool_choice": choice, "parallel_tool_calls": true, "text": map[string]any{"format": format},
		"reasoning": map[string]any{"effort": effort, "summary": nil}, "metadata": metadata, "store": q.stores(), "background": false,
		"previous_response_id": q.Previous, "truncation": "disabled", "service_tier": "default", "seed": settings.Sampling.Seed,
	}
	if t := e.timings; t != nil && t.Grade != "" {
		all["grade"] = t.Grade
		if t.Search != nil {
			all["search"] = t.Search
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
	if e.Out == nil {
		return nil
	}
	for _, v := range all {
		v.fields["type"], v.fields["sequence_number"] = v.kind, e.sequence
		e.sequence++
		if err := e.Out.Named(v.kind, v.fields); err != nil {
			return err
		}
	}
	return nil
}

// Begin implements [driver.Encoder].
func (e *responseEncoder) Begin() error {
	return e.emit(event{"response.created", map[string]any{"response": e.response()}}, event{"response.in_progress", map[string]any{"response": e.response()}})
}

// Token implements [driver.Encoder].
func (e *responseEncoder) Token(_ int, t grove.Token, _ *serving.Timings) error {
	var logprobs []chatLogprob
	if e.logprobs && t.ID != token.None {
		logprobs = append(logprobs, chatLogprobOf(e.Host, t))
	}
	content, calls := e.answer.Add(e.Host, t)
	return e.add(content, calls, logprobs)
}

// End implements [driver.Encoder].
func (e *responseEncoder) End(answer int) error {
	content, calls := e.answer.Close()
	if err := e.add(content, calls, nil); err != nil {
		return err
	}
	if len(e.items) == 0 { // an empty answer is a message, too
		if err := e.say("", nil); err != nil {
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
	if err := e.keep(); err != nil {
		return err
	}
	if e.Out == nil {
		return e.Reply(e.response())
	}
	return e.emit(event{"response." + e.status, map[string]any{"response": e.response()}})
}

// Fail implements [driver.Encoder].
func (e *responseEncoder) Fail(err *wire.Error) error {
	return e.emit(event{"error", map[string]any{"code": err.Code, "message": err.Message, "param": nil}})
}

// add adds text and calls to the items.
func (e *responseEncoder) add(content string, calls []driver.Call, logprobs []chatLogprob) error {
	if content != "" || len(logprobs) > 0 {
		if err := e.say(content, logprobs); err != nil {
			return err
		}
	}
	for _, c := range calls {
		if err := e.call(c); err != nil {
			return err
		}
	}
	return nil
}

// message returns the message that goes on, and its index; nil where none does.
func (e *responseEncoder) message() (m *responseItem, at int) {
	at = len(e.items) - 1
	if at >= 0 && e.items[at].Status == "in_progress" {
		return e.items[at], at
	}
	return nil, at + 1
}

// say adds to the message, or begins one.
func (e *responseEncoder) say(text string, logprobs []chatLogprob) error {
	m, at := e.message()
	if m == nil {
		m = &responseItem{Type: "message", ID: e.itemID("msg"), Status: "in_progress", Role: "assistant", Content: &[]outputText{}}
		e.items = append(e.items, m)
		if err := e.emit(
			event{"response.output_item.added", map[string]any{"output_index": at, "item": m}},
			event{"response.content_part.added", map[string]any{"item_id": m.ID, "output_index": at, "content_index": 0, "part": newOutputText("", nil)}},
		); err != nil {
			return err
		}
	}
	m.text.WriteString(text)
	m.logprobs = append(m.logprobs, logprobs...)
	return e.emit(event{"response.output_text.delta", map[string]any{
		"item_id": m.ID, "output_index": at, "content_index": 0, "delta": text, "logprobs": append([]chatLogprob{}, logprobs...),
	}})
}

// endMessage ends the message that goes on, if one does.
func (e *responseEncoder) endMessage(status string) error {
	m, at := e.message()
	if m == nil {
		return nil
	}
	part := newOutputText(m.text.String(), m.logprobs)
	m.Status, m.Content = status, &[]outputText{part}
	return e.emit(
		event{"response.output_text.done", map[string]any{"item_id": m.ID, "output_index": at, "content_index": 0, "text": part.Text, "logprobs": part.Logprobs}},
		event{"response.content_part.done", map[string]any{"item_id": m.ID, "output_index": at, "content_index": 0, "part": part}},
		event{"response.output_item.done", map[string]any{"output_index": at, "item": m}},
	)
}

// call adds a call. The message before it is complete.
func (e *responseEncoder) call(c driver.Call) error {
	if err := e.endMessage("completed"); err != nil {
		return err
	}
	at, arguments := len(e.items), c.Arguments
	item := &responseItem{Type: "function_call", ID: e.itemID("fc"), Status: "completed", CallID: c.ID, Name: c.Name, Arguments: &arguments}
	e.items = append(e.items, item)
	begun := &responseItem{Type: item.Type, ID: item.ID, Status: "in_progress", CallID: c.ID, Name: item.Name, Arguments: new(string)}
	return e.emit(
		event{"response.output_item.added", map[string]any{"output_index": at, "item": begun}},
		event{"response.function_call_arguments.delta", map[string]any{"item_id": item.ID, "output_index": at, "delta": arguments}},
		event{"response.function_call_arguments.done", map[string]any{"item_id": item.ID, "output_index": at, "name": item.Name, "arguments": arguments}},
		event{"response.output_item.done", map[string]any{"output_index": at, "item": item}},
	)
}

func (e *responseEncoder) itemID(kind string) string {
	return kind + "_" + e.ID + "-" + strconv.Itoa(len(e.items))
}

func newOutputText(text string, logprobs []chatLogprob) outputText {
	return outputText{"output_text", text, []any{}, append([]chatLogprob{}, logprobs...)}
}
