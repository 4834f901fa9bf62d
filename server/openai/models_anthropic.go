package openai

import (
	"strconv"
	"time"

	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// anthropicVersion is the header by which a client asks for models as Anthropic's API describes them.
const anthropicVersion = "Anthropic-Version"

// anthropicModelBody describes a model. Its limits are null where it is not open.
type anthropicModelBody struct {
	Type         string         `json:"type"`
	ID           string         `json:"id"`
	Name         string         `json:"display_name"`
	Created      time.Time      `json:"created_at"`
	MaxInput     *int           `json:"max_input_tokens"`
	MaxTokens    *int           `json:"max_tokens"`
	Capabilities map[string]any `json:"capabilities"`
}

func anthropicModel(s *driver.Server, m serving.State, name string) anthropicModelBody {
	b := anthropicModelBody{Type: "model", ID: name, Name: name, Created: s.Began.UTC().Truncate(time.Second), Capabilities: map[string]any{}}
	if h := m.Model; h != nil {
		b.Name, b.Created = h.Info.Name, h.Created.UTC().Truncate(time.Second)
		b.MaxInput, b.MaxTokens = &h.Info.Context, &h.Info.Context
	}
	if b.Name == "" {
		b.Name = name
	}
	for _, c := range s.Capabilities(m) {
		b.Capabilities[c] = map[string]bool{"supported": true}
	}
	return b
}

// anthropicModels handles GET /v1/models for clients of Anthropic's API: pages of limit models behind after_id or before before_id.
func anthropicModels(x *driver.Request) error {
	all := []anthropicModelBody{}
	for _, m := range x.Server.Pool.States() {
		all = append(all, anthropicModel(x.Server, m, m.Name))
		for _, a := range adapters(x.Server, m) {
			all = append(all, anthropicModel(x.Server, m, a.ID))
		}
	}
	q := x.R.URL.Query()
	limit := 20
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return wire.Refuse("limit", "limit is %q; it must be from 1 to 1000", wire.Clip(text))
		}
		limit = n
	}
	after, before := q.Get("after_id"), q.Get("before_id")
	for i, m := range all {
		switch m.ID {
		case after:
			all = all[i+1:]
		case before:
			all = all[:i]
		default:
			continue
		}
		break
	}
	more := len(all) > limit
	switch {
	case more && before != "":
		all = all[len(all)-limit:]
	case more:
		all = all[:limit]
	}
	page := map[string]any{"data": all, "has_more": more, "first_id": nil, "last_id": nil}
	if len(all) > 0 {
		page["first_id"], page["last_id"] = all[0].ID, all[len(all)-1].ID
	}
	return x.Reply(page)
}
