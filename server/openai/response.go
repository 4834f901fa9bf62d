package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

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
	items    []*responseItem
	sequence int // number of the next event
	usage    *responseUsage
	timings  *serving.Timings // of the whole answer; nil: it goes on
}

// responseItem is a message, thoughts or a call.
type responseItem struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	Status    string  `json:"status"`
	Role      string  `json:"role,omitempty"`
	Summary   *[]any  `json:"summary,omitempty"` // of thoughts: empty
	Content   any     `json:"content,omitempty"` // of a message and of thoughts: a list of one part
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`

	text     strings.Builder
	logprobs []driver.Scored
	model    *serving.OpenModel
}

// outputText is the content of a message.
type outputText struct {
	Type        string         `json:"type"`
	Text        string         `json:"text"`
	Annotations []any          `json:"annotations"`
	Logprobs    *wire.Sequence `json:"logprobs"`
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
		"id": "resp_" + e.ID, "object": "response", "created_at": e.Created, "status": e.status, "model": e.Model.Name,
		"output": append([]*responseItem{}, e.items...), "usage": e.usage, "error": nil, "incomplete_details": incomplete,
		"instructions": q.Instructions, "max_output_tokens": q.MaxTokens, "temperature": settings.Sampling.Temperature, "top_p": settings.Sampling.AskedTopP(),
		"tools": tools, "tool_choice": choice, "parallel_tool_calls": q.Parallel == nil || *q.Parallel, "text": map[string]any{"format": format},
		"reasoning": map[string]any{"effort": effort, "summary": nil}, "metadata": metadata, "store": q.stores(), "background": false,
		"previous_response_id": q.Previous, "truncation": "disabled", "service_tier": "default", "seed": settings.Sampling.Seed,
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
	case e.Out == nil:
		return e.Reply(json.RawMessage(body))
	}
	return e.emit(event{"response." + e.status, map[string]any{"response": json.RawMessage(body)}})
}

// Fail implements [driver.Encoder].
func (e *responseEncoder) Fail(err *wire.Error) error {
	return e.emit(event{"error", map[string]any{"code": err.Code, "message": err.Message, "param": nil}})
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

// The types of items that have a text, which are the names of its events, too.
const (
	kindMessage   = "message"
	kindReasoning = "reasoning"
)

// open returns the item that goes on, and its index; nil where none does.
func (e *responseEncoder) open() (m *responseItem, at int) {
	at = len(e.items) - 1
	if at >= 0 && e.items[at].Status == "in_progress" {
		return e.items[at], at
	}
	return nil, at + 1
}

// say adds to the item that goes on, where that is of the kind, or begins one.
func (e *responseEncoder) say(kind, text string, logprobs []driver.Scored) error {
	m, at := e.open()
	if m != nil && m.Type != kind {
		if err := e.endMessage("completed"); err != nil {
			return err
		}
		m, at = e.open()
	}
	if m == nil {
		if m = (&responseItem{Type: kind, ID: e.itemID("msg"), Status: "in_progress", Role: "assistant", Content: []any{}, model: e.Model}); kind == kindReasoning {
			m.ID, m.Role, m.Summary = e.itemID("rs"), "", &[]any{}
		}
		e.items = append(e.items, m)
		if err := e.emit(
			event{"response.output_item.added", map[string]any{"output_index": at, "item": m}},
			event{"response.content_part.added", map[string]any{"item_id": m.ID, "output_index": at, "content_index": 0, "part": m.part()}},
		); err != nil {
			return err
		}
	}
	m.text.WriteString(text)
	m.logprobs = append(m.logprobs, logprobs...)
	fields := map[string]any{"item_id": m.ID, "output_index": at, "content_index": 0, "delta": text}
	if kind == kindMessage {
		fields["logprobs"] = logprobsOf(e.Model, logprobs)
	}
	return e.emit(event{m.event("delta"), fields})
}

// part returns the text of an item as a part of its content.
func (m *responseItem) part() any {
	if m.Type == kindReasoning {
		return map[string]string{"type": "reasoning_text", "text": m.text.String()}
	}
	return outputText{"output_text", m.text.String(), []any{}, logprobsOf(m.model, m.logprobs)}
}

// event returns the name of an event of the item's text.
func (m *responseItem) event(name string) string {
	if m.Type == kindReasoning {
		return "response.reasoning_text." + name
	}
	return "response.output_text." + name
}

// endMessage ends the item that goes on, if one does.
func (e *responseEncoder) endMessage(status string) error {
	m, at := e.open()
	if m == nil {
		return nil
	}
	part := m.part()
	m.Status, m.Content = status, []any{part}
	done := map[string]any{"item_id": m.ID, "output_index": at, "content_index": 0, "text": m.text.String()}
	if m.Type == kindMessage {
		done["logprobs"] = logprobsOf(e.Model, m.logprobs)
	}
	return e.emit(
		event{m.event("done"), done},
		event{"response.content_part.done", map[string]any{"item_id": m.ID, "output_index": at, "content_index": 0, "part": part}},
		event{"response.output_item.done", map[string]any{"output_index": at, "item": m}},
	)
}

// begin adds a call without arguments. The message before it is complete.
func (e *responseEncoder) begin(c answer.Call) error {
	if err := e.endMessage("completed"); err != nil {
		return err
	}
	begun := &responseItem{Type: "function_call", ID: e.itemID("fc"), Status: "in_progress", CallID: c.ID, Name: c.Name, Arguments: new(string)}
	e.items = append(e.items, begun)
	return e.emit(event{"response.output_item.added", map[string]any{"output_index": len(e.items) - 1, "item": begun}})
}

// argue adds arguments to the call that goes on.
func (e *responseEncoder) argue(text string) error {
	at := len(e.items) - 1
	return e.emit(event{"response.function_call_arguments.delta", map[string]any{"item_id": e.items[at].ID, "output_index": at, "delta": text}})
}

// call ends a call.
func (e *responseEncoder) call(c answer.Call) error {
	at := slices.IndexFunc(e.items, func(m *responseItem) bool { return m.CallID == c.ID && m.Type == "function_call" })
	item := *e.items[at]
	if item.Arguments, item.Status = &c.Arguments, "completed"; c.Cut {
		item.Status = "incomplete"
	}
	e.items[at] = &item
	return e.emit(
		event{"response.function_call_arguments.done", map[string]any{"item_id": item.ID, "output_index": at, "name": item.Name, "arguments": c.Arguments}},
		event{"response.output_item.done", map[string]any{"output_index": at, "item": &item}},
	)
}

func (e *responseEncoder) itemID(kind string) string {
	return kind + "_" + e.ID + "-" + strconv.Itoa(len(e.items))
}
