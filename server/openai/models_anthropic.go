package openai

import (
	"time"

	"grove/server/anthropic"
	"grove/server/driver"
	"grove/server/serving"
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
	p, err := anthropic.ReadPage(x)
	if err != nil {
		return err
	}
	var all []anthropicModelBody
	for _, m := range x.Server.Pool.States() {
		all = append(all, anthropicModel(x.Server, m, m.Name))
		for _, a := range adapters(x.Server, m) {
			all = append(all, anthropicModel(x.Server, m, a.ID))
		}
	}
	return x.Reply(anthropic.Page(p, all, func(m anthropicModelBody) string { return m.ID }))
}
