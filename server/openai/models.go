package openai

import (
	"grove/server/driver"
	"grove/server/serving"
)

// modelBody describes a model; Meta is null where it is not open.
type modelBody struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"`
	Created int64             `json:"created"`
	Owner   string            `json:"owned_by"`
	MaxLen  int               `json:"max_model_len,omitempty"`
	Status  map[string]string `json:"status"`
	Meta    map[string]any    `json:"meta"`
}

func describe(s *driver.Server, m serving.State) modelBody {
	b := modelBody{ID: m.Name, Object: "model", Created: s.Began.Unix(), Owner: "grove", Status: map[string]string{"value": m.Status}}
	if h := m.Host; h != nil {
		b.Created, b.MaxLen = h.Created.Unix(), h.Info.Context
		b.Meta = map[string]any{
			"architecture": h.Info.Arch, "name": h.Info.Name, "n_ctx": h.Info.Context, "n_vocab": h.Info.Vocabulary,
			"size": h.Info.WeightBytes,
		}
	}
	return b
}

// models handles GET /v1/models.
func models(x *driver.Request) error {
	data := []modelBody{}
	for _, m := range x.Server.Pool.States() {
		data = append(data, describe(x.Server, m))
	}
	return x.Reply(map[string]any{"object": "list", "data": data})
}

// oneModel handles GET /v1/models/{name}.
func oneModel(x *driver.Request) error {
	m, err := x.Server.Pool.State(x.R.PathValue("name"))
	if err != nil {
		return err
	}
	return x.Reply(describe(x.Server, m))
}
