package openai

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"

	"grove/server/access"
	"grove/server/driver"
	"grove/server/wire"
)

// storedResponse is an answer that later requests go on from. It does not change.
type storedResponse struct {
	body     json.RawMessage
	messages []message // of the conversation with the answer, without the instructions
	input    input     // of this request
}

// The memory of a message and of an item beside that of their texts.
var (
	messageBytes = int(reflect.TypeFor[message]().Size())
	itemBytes    = int(reflect.TypeFor[inputItem]().Size())
)

// owner returns whose stored answers a request may refer to.
func owner(x *driver.Request) string { return access.CallerOf(x.R.Context()).Folder() }

// stored returns the stored answer of an id.
func stored(x *driver.Request, id, param string) (*storedResponse, error) {
	v, found := x.Server.History.Get(owner(x), id)
	if r, ok := v.(*storedResponse); found && ok {
		return r, nil
	}
	e := wire.Refuse(param, "the response %q is not stored; the server keeps the last %d, of %d MiB together", wire.Clip(id), driver.HistoryEntries, driver.HistoryBytes>>20)
	e.Status, e.Code = http.StatusNotFound, "response_not_found"
	return nil, e
}

// keep stores the answer, unless the request asks that it is not.
func (e *responseEncoder) keep(body json.RawMessage) error {
	if !e.q.stores() {
		return nil
	}
	answer := message{Role: "assistant", Content: wire.ContentText{e.answer.Content.String()}, Reasoning: e.answer.Reasoning.String()}
	for _, c := range e.answer.Calls {
		answer.ToolCalls = append(answer.ToolCalls, toolCallOf(c))
	}
	messages := append(slices.Clone(e.q.conversation), answer)
	text, err := wire.Marshal(messages)
	if err != nil {
		return err
	}
	size := len(body) + 2*len(text) + len(messages)*messageBytes + len(e.q.Input)*itemBytes
	e.Server.History.Put(owner(e.Request), "resp_"+e.ID, &storedResponse{body, messages, e.q.Input}, size)
	return nil
}

// getResponse handles GET /v1/responses/{id}.
func getResponse(x *driver.Request) error {
	r, err := stored(x, x.R.PathValue("id"), "")
	if err != nil {
		return err
	}
	return x.Reply(r.body)
}

// getInput handles GET /v1/responses/{id}/input_items.
func getInput(x *driver.Request) error {
	r, err := stored(x, x.R.PathValue("id"), "")
	if err != nil {
		return err
	}
	items := []map[string]any{}
	for _, item := range r.input {
		items = append(items, item.shown())
	}
	return x.Reply(map[string]any{"object": "list", "data": items, "has_more": false, "first_id": nil, "last_id": nil})
}

// deleteResponse handles DELETE /v1/responses/{id}.
func deleteResponse(x *driver.Request) error {
	id := x.R.PathValue("id")
	if _, err := stored(x, id, ""); err != nil {
		return err
	}
	x.Server.History.Drop(owner(x), id)
	return x.Reply(map[string]any{"id": id, "object": "response", "deleted": true})
}

// shown returns an item as the API shows it.
func (i inputItem) shown() map[string]any {
	part := func(kind string, texts wire.ContentText) []map[string]any {
		parts := []map[string]any{}
		for _, text := range texts {
			parts = append(parts, map[string]any{"type": kind, "text": text})
		}
		return parts
	}
	switch i.Type {
	case "function_call":
		return map[string]any{"type": i.Type, "call_id": i.CallID, "name": i.Name, "arguments": i.Arguments}
	case "function_call_output":
		return map[string]any{"type": i.Type, "call_id": i.CallID, "output": i.Output.Text()}
	case "reasoning":
		return map[string]any{"type": i.Type, "summary": []any{}, "content": part("reasoning_text", i.Content)}
	}
	kind := "input_text"
	if i.Role == "assistant" {
		kind = "output_text"
	}
	return map[string]any{"type": "message", "role": i.Role, "content": part(kind, i.Content)}
}
