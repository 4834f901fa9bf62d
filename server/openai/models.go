package openai

import (
	"path/filepath"

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

	Memory       *int     `json:"memory_bytes"` // null: the model is not open
	Requests     requests `json:"requests"`
	Capabilities []string `json:"capabilities"`
	Sleeping     bool     `json:"is_sleeping"` // it is not open, and the next request opens it

	Root   string `json:"root,omitempty"`   // of an adapter: its file's name
	Parent string `json:"parent,omitempty"` // of an adapter: its base
}

// requests counts the texts of a model.
type requests struct {
	Running int `json:"running"`
	Queued  int `json:"queued"`
}

// entry describes a model in the list that llama.cpp's server has beside OpenAI's, for ollama's clients.
type entry struct {
	Name         string            `json:"name"`
	Model        string            `json:"model"`
	Type         string            `json:"type"`
	Tags         []string          `json:"tags"`
	Capabilities []string          `json:"capabilities"`
	Details      map[string]string `json:"details"`
}

func describe(s *driver.Server, m serving.State) modelBody {
	b := modelBody{ID: m.Name, Object: "model", Created: s.Began.Unix(), Owner: "grove", Status: map[string]string{"value": m.Status}}
	b.Capabilities, b.Sleeping = append([]string{}, s.Capabilities(m)...), m.Status == "unloaded"
	if h := m.Model; h != nil {
		memory := h.Memory()
		b.Memory = &memory
		b.Requests.Running, b.Requests.Queued = h.Requests()
		b.Created, b.MaxLen = h.Created.Unix(), h.Info.Context
		b.Meta = map[string]any{
			"architecture": h.Info.Arch, "name": h.Info.Name, "n_ctx": h.Info.Context, "n_ctx_train": h.Info.TrainedContext, "n_vocab": h.Info.Vocabulary,
			"size": h.Info.WeightBytes,
		}
	}
	return b
}

// adapters describes the adapters of a model that is open, which are models that requests name.
func adapters(s *driver.Server, m serving.State) (all []modelBody) {
	if m.Model == nil {
		return nil
	}
	for _, a := range m.Model.Model.Adapters() {
		b := describe(s, m)
		b.ID, b.Root, b.Parent, b.Memory = a.Name, filepath.Base(a.Path), m.Name, &a.Bytes
		all = append(all, b)
	}
	return all
}

// models handles GET /v1/models.
func models(x *driver.Request) error {
	if x.R.Header.Get(anthropicVersion) != "" {
		return anthropicModels(x)
	}
	data, models := []modelBody{}, []entry{}
	for _, m := range x.Server.Pool.States() {
		b := describe(x.Server, m)
		data = append(append(data, b), adapters(x.Server, m)...)
		models = append(models, entry{
			Name: m.Name, Model: m.Name, Type: "model", Tags: []string{}, Capabilities: b.Capabilities, Details: map[string]string{"format": "gguf"},
		})
	}
	return x.Reply(map[string]any{"object": "list", "data": data, "models": models})
}

// oneModel handles GET /v1/models/{name}.
func oneModel(x *driver.Request) error {
	name := x.R.PathValue("name")
	model, _ := x.Server.Pool.Adapter(name)
	m, err := x.Server.Pool.State(model)
	if err != nil {
		return err
	}
	if x.R.Header.Get(anthropicVersion) != "" {
		return x.Reply(anthropicModel(x.Server, m, name))
	}
	for _, a := range adapters(x.Server, m) {
		if model != name && a.ID == name {
			return x.Reply(a)
		}
	}
	return x.Reply(describe(x.Server, m))
}
