package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"grove/server/access"
	"grove/server/driver"
	"grove/server/wire"
)

// storedResponse is an answer that later requests go on from. It does not change.
type storedResponse struct {
	body     json.RawMessage
	messages []message             // of the conversation with the answer, without the instructions
	input    input                 // of this request
	output   map[string]*inputItem // by their ids
	task     *task                 // of an answer in the background
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
	if t, ok := v.(*task); found && ok {
		return &storedResponse{body: t.now(), task: t}, nil
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
	messages := append(slices.Clone(e.q.made.conversation), answer)
	text, err := wire.Marshal(messages)
	if err != nil {
		return err
	}
	size := len(body) + 3*len(text) + len(messages)*messageBytes + (len(e.q.Input)+len(e.items))*itemBytes
	r := &storedResponse{body, messages, e.q.Input, map[string]*inputItem{}, e.q.made.task}
	if r.task != nil {
		r.task.show(body)
		size += r.task.bytes
	}
	for _, m := range e.items {
		r.output[m.ID] = m.input()
	}
	e.Server.History.Put(owner(e.Request), "resp_"+e.ID, r, size)
	return nil
}

// input returns an item of an answer as requests send it back.
func (m *responseItem) input() *inputItem {
	i := &inputItem{itemFields{Type: m.Type, ID: m.ID, Role: m.Role, CallID: m.CallID, Name: m.Name, Namespace: m.Namespace}}
	switch {
	case m.Input != nil:
		i.Input = *m.Input
	case m.Arguments != nil:
		i.Arguments = *m.Arguments
	default:
		i.Content = wire.ContentText{m.text.String()}
	}
	return i
}

// kindItem begins the ids of items of stored requests.
const kindItem = "item"

// storedItem returns an item of a stored answer, or of its request. Its id has that of the answer, and a number.
func storedItem(x *driver.Request, id string) (*inputItem, error) {
	kind, of, _ := strings.Cut(id, "_")
	dash := max(strings.LastIndex(of, "-"), 0)
	v, _ := x.Server.History.Get(owner(x), "resp_"+of[:dash])
	if r, ok := v.(*storedResponse); ok {
		n, err := strconv.ParseUint(strings.TrimPrefix(of[dash:], "-"), 10, 32)
		if kind == kindItem && err == nil && n < uint64(len(r.input)) && r.input[n].Type != "item_reference" {
			return &r.input[n], nil
		}
		if r.output[id] != nil {
			return r.output[id], nil
		}
	}
	e := wire.Refuse("", "the item %q is not stored; items of stored answers can be named, and the server keeps the last %d answers", wire.Clip(id), driver.HistoryEntries)
	e.Status, e.Code = http.StatusNotFound, "item_not_found"
	return nil, e
}

// getResponse handles GET /v1/responses/{id}.
func getResponse(x *driver.Request) error {
	r, err := stored(x, x.R.PathValue("id"), "")
	if err != nil {
		return err
	}
	if r.task != nil {
		return r.task.shown(x)
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
	var first, last any
	for i := range r.input {
		id := fmt.Sprintf(kindItem+"_%s-%d", strings.TrimPrefix(x.R.PathValue("id"), "resp_"), i)
		items = append(items, r.input[i].shown(id))
		if last = id; i == 0 {
			first = id
		}
	}
	return x.Reply(map[string]any{"object": "list", "data": items, "has_more": false, "first_id": first, "last_id": last})
}

// deleteResponse handles DELETE /v1/responses/{id}.
func deleteResponse(x *driver.Request) error {
	id := x.R.PathValue("id")
	r, err := stored(x, id, "")
	if err != nil {
		return err
	}
	if r.task != nil {
		if err := r.task.stop(x); err != nil {
			return err
		}
	}
	x.Server.History.Drop(owner(x), id)
	return x.Reply(map[string]any{"id": id, "object": "response", "deleted": true})
}
