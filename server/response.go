package server

import (
	"strconv"
	"strings"

	"grove"
	"grove/server/serving"
)

// response is an answer of /v1/responses under way: items, of which the last one may be a message that goes on.
type response struct {
	*chatReply
	request  *responsesRequest
	id       string
	status   string
	items    []*responseItem
	sequence int // number of the next event
	usage    *responseUsage
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

// outputText is what a message says.
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

// body returns the response as it stands.
func (r *response) body() map[string]any {
	q, settings := r.request, r.job.Answers[0].Request()
	var incomplete any
	if r.status == "incomplete" {
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
	return map[string]any{
		"id": r.id, "object": "response", "created_at": r.created, "status": r.status, "model": r.host.Name,
		"output": append([]*responseItem{}, r.items...), "usage": r.usage, "error": nil, "incomplete_details": incomplete,
		"instructions": q.Instructions, "max_output_tokens": q.MaxTokens, "temperature": settings.Sampling.Temperature, "top_p": settings.Sampling.TopP,
		"tools": tools, "tool_choice": choice, "parallel_tool_calls": true, "text": map[string]any{"format": format},
		"reasoning": map[string]any{"effort": effort, "summary": nil}, "metadata": metadata, "store": false, "background": false,
		"previous_response_id": nil, "truncation": "disabled", "service_tier": "default", "seed": settings.Sampling.Seed,
	}
}

// emitter sends an event; nil: nobody listens.
type emitter func(kind string, fields map[string]any) error

func (f emitter) send(kind string, fields map[string]any) error {
	if f == nil {
		return nil
	}
	return f(kind, fields)
}

// send sends an event with its number.
func (r *response) send(out *stream, kind string, fields map[string]any) error {
	fields["type"], fields["sequence_number"] = kind, r.sequence
	r.sequence++
	return out.named(kind, fields)
}

// stream sends the answer as it comes.
func (r *response) stream(out *stream) error {
	emit := emitter(func(kind string, fields map[string]any) error { return r.send(out, kind, fields) })
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := emit.send(kind, map[string]any{"response": r.body()}); err != nil {
			return err
		}
	}
	err := r.job.Run(func(e serving.Event) error {
		if e.Answer < 0 {
			return out.alive()
		}
		return r.take(e, emit)
	})
	if err != nil {
		return err
	}
	return emit.send("response."+r.status, map[string]any{"response": r.body()})
}

// take adds news to the items and sends what is new.
func (r *response) take(e serving.Event, emit emitter) error {
	if e.Answer < 0 {
		return nil
	}
	a := &r.answers[0]
	content, calls := r.chatReply.take(e)
	if content != "" || len(a.logprobs) > 0 {
		if err := r.say(content, a.logprobs, emit); err != nil {
			return err
		}
		a.logprobs = nil
	}
	for _, c := range calls {
		if err := r.call(c, emit); err != nil {
			return err
		}
	}
	if !e.Done {
		return nil
	}
	if len(r.items) == 0 { // an answer of nothing is a message, too
		if err := r.say("", nil, emit); err != nil {
			return err
		}
	}
	stats := r.job.Answers[0].Stats()
	r.status = "completed"
	if stats.Finish != grove.FinishStop {
		r.status = "incomplete"
	}
	if err := r.endMessage(r.status, emit); err != nil {
		return err
	}
	u, _ := r.spent()
	r.usage = &responseUsage{
		u.PromptTokens, map[string]int{"cached_tokens": u.PromptDetails.Cached}, u.CompletionTokens, map[string]int{"reasoning_tokens": 0}, u.TotalTokens,
	}
	return nil
}

// message returns the message that goes on, and where it stands; nil where none does.
func (r *response) message() (m *responseItem, at int) {
	at = len(r.items) - 1
	if at >= 0 && r.items[at].Status == "in_progress" {
		return r.items[at], at
	}
	return nil, at + 1
}

// say adds to the message, or begins one.
func (r *response) say(text string, logprobs []chatLogprob, emit emitter) error {
	m, at := r.message()
	if m == nil {
		m = &responseItem{Type: "message", ID: r.itemID("msg"), Status: "in_progress", Role: "assistant", Content: &[]outputText{}}
		r.items = append(r.items, m)
		if err := emit.send("response.output_item.added", map[string]any{"output_index": at, "item": m}); err != nil {
			return err
		}
		if err := emit.send("response.content_part.added", map[string]any{"item_id": m.ID, "output_index": at, "content_index": 0, "part": said("", nil)}); err != nil {
			return err
		}
	}
	m.text.WriteString(text)
	m.logprobs = append(m.logprobs, logprobs...)
	return emit.send("response.output_text.delta", map[string]any{
		"item_id": m.ID, "output_index": at, "content_index": 0, "delta": text, "logprobs": append([]chatLogprob{}, logprobs...),
	})
}

// endMessage ends the message that goes on, if one does.
func (r *response) endMessage(status string, emit emitter) error {
	m, at := r.message()
	if m == nil {
		return nil
	}
	part := said(m.text.String(), m.logprobs)
	m.Status, m.Content = status, &[]outputText{part}
	for _, e := range []struct {
		kind   string
		fields map[string]any
	}{
		{"response.output_text.done", map[string]any{"item_id": m.ID, "content_index": 0, "text": part.Text, "logprobs": part.Logprobs}},
		{"response.content_part.done", map[string]any{"item_id": m.ID, "content_index": 0, "part": part}},
		{"response.output_item.done", map[string]any{"item": m}},
	} {
		e.fields["output_index"] = at
		if err := emit.send(e.kind, e.fields); err != nil {
			return err
		}
	}
	return nil
}

// call adds a call.
func (r *response) call(c toolCall, emit emitter) error {
	if err := r.endMessage("completed", emit); err != nil {
		return err
	}
	at, arguments, none := len(r.items), c.Function.Arguments, ""
	item := &responseItem{Type: "function_call", ID: r.itemID("fc"), Status: "completed", CallID: c.ID, Name: c.Function.Name, Arguments: &arguments}
	r.items = append(r.items, item)
	begun := &responseItem{Type: item.Type, ID: item.ID, Status: "in_progress", CallID: c.ID, Name: item.Name, Arguments: &none}
	for _, e := range []struct {
		kind   string
		fields map[string]any
	}{
		{"response.output_item.added", map[string]any{"item": begun}},
		{"response.function_call_arguments.delta", map[string]any{"item_id": item.ID, "delta": arguments}},
		{"response.function_call_arguments.done", map[string]any{"item_id": item.ID, "name": item.Name, "arguments": arguments}},
		{"response.output_item.done", map[string]any{"item": item}},
	} {
		e.fields["output_index"] = at
		if err := emit.send(e.kind, e.fields); err != nil {
			return err
		}
	}
	return nil
}

func (r *response) itemID(kind string) string {
	return kind + "_" + r.x.id + "-" + strconv.Itoa(len(r.items))
}

func said(text string, logprobs []chatLogprob) outputText {
	return outputText{"output_text", text, []any{}, append([]chatLogprob{}, logprobs...)}
}
