package openai

import (
	"slices"
	"strconv"
	"strings"

	"grove/internal/text/answer"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

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
	Namespace string  `json:"namespace,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"`             // of a custom tool's call
	Encrypted *string `json:"encrypted_content,omitempty"` // of thoughts, where they are asked for

	text     strings.Builder
	custom   *customText // of a custom tool's call that goes on
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

// The types of items that have a text, which are the names of its events, too.
const (
	kindMessage   = "message"
	kindReasoning = "reasoning"
)

// The types of items that are calls.
const (
	kindCall   = "function_call"
	kindCustom = "custom_tool_call"
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
	if m.Type == kindReasoning && e.q.includes(includeThoughts) {
		m.Encrypted = seal(m.text.String())
	}
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
	begun := &responseItem{Type: kindCall, ID: e.itemID("fc"), Status: "in_progress", CallID: c.ID, Name: c.Name, Arguments: new(string)}
	if t, known := e.q.made.offers.named[c.Name]; known {
		begun.Name, begun.Namespace = t.name, t.namespace
		if t.custom {
			begun.Type, begun.ID, begun.custom, begun.Arguments, begun.Input = kindCustom, e.itemID("ctc"), new(customText), nil, new(string)
		}
	}
	e.items = append(e.items, begun)
	return e.emit(event{"response.output_item.added", map[string]any{"output_index": len(e.items) - 1, "item": begun}})
}

// argue adds arguments to the call that goes on.
func (e *responseEncoder) argue(text string) error {
	at := len(e.items) - 1
	kind, item := "response.function_call_arguments.delta", e.items[at]
	if item.custom != nil {
		kind = "response.custom_tool_call_input.delta"
		if text = item.custom.add(text); text == "" {
			return nil
		}
	}
	return e.emit(event{kind, map[string]any{"item_id": item.ID, "output_index": at, "delta": text}})
}

// call ends a call.
func (e *responseEncoder) call(c answer.Call) error {
	at := slices.IndexFunc(e.items, func(m *responseItem) bool { return m.CallID == c.ID && (m.Type == kindCall || m.Type == kindCustom) })
	item := *e.items[at]
	if item.Status = "completed"; c.Cut {
		item.Status = "incomplete"
	}
	done := event{"response.function_call_arguments.done", map[string]any{"item_id": item.ID, "output_index": at, "name": item.Name, "arguments": c.Arguments}}
	if item.Arguments = &c.Arguments; item.custom != nil {
		item.Arguments, item.Input, item.custom = nil, new(customInput(c.Arguments)), nil
		done = event{"response.custom_tool_call_input.done", map[string]any{"item_id": item.ID, "output_index": at, "input": *item.Input}}
	}
	e.items[at] = &item
	return e.emit(done, event{"response.output_item.done", map[string]any{"output_index": at, "item": &item}})
}

func (e *responseEncoder) itemID(kind string) string {
	return kind + "_" + e.ID + "-" + strconv.Itoa(len(e.items))
}
