package server

import (
	"net/http"
	"time"

	"grove"
	"grove/server/page"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/chat"
)

// health handles GET /health: 503 until the models are loaded and once the server stops.
func health(x *request) error {
	switch {
	case x.server.pool.Ending():
		return wire.ErrStopping
	case !x.server.ready.Load():
		return wire.ErrLoading
	}
	return x.reply(map[string]string{"status": "ok"})
}

// chatPage handles GET /. Where requests need a key, the page asks the user for it.
func chatPage(x *request) error {
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(writeTime)) // a recorder of tests has none
	page.ServeHTTP(x.w, x.r)
	return nil
}

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

func (s *Server) describe(m serving.State) modelBody {
	b := modelBody{ID: m.Name, Object: "model", Created: s.began.Unix(), Owner: "grove", Status: map[string]string{"value": m.Status}}
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
func models(x *request) error {
	data := []modelBody{}
	for _, m := range x.server.pool.States() {
		data = append(data, x.server.describe(m))
	}
	return x.reply(map[string]any{"object": "list", "data": data})
}

// oneModel handles GET /v1/models/{name}.
func oneModel(x *request) error {
	m, err := x.server.pool.State(x.r.PathValue("name"))
	if err != nil {
		return err
	}
	return x.reply(x.server.describe(m))
}

// props handles GET /props.
func props(x *request) error {
	h, err := x.model(x.r.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	template := ""
	if t, _ := h.Model.Templates().For(chat.Options{}); t != nil { // conversations get the error
		template = t.Source()
	}
	return x.reply(map[string]any{
		"methods": grove.Methods(), "chat_template": template, "draft": h.Info.Draft,
		"model_alias": h.Name, "model_path": h.Name, "total_slots": h.Info.Parallel, "build_info": fingerprint,
		"default_generation_settings": map[string]any{"n_ctx": h.Info.Context, "params": map[string]any{
			"temperature": wire.DefaultsNative.Sampling.Temperature, "top_k": wire.DefaultsNative.Sampling.TopK,
			"top_p": wire.DefaultsNative.Sampling.TopP, "min_p": wire.DefaultsNative.Sampling.MinP, "n_predict": -1, "seed": -1,
		}},
		"modalities": map[string]bool{"vision": false, "audio": false},
	})
}

// slots handles GET /slots. With fail_on_no_slot it answers 503 where all are in use.
func slots(x *request) error {
	query := x.r.URL.Query()
	h, err := x.model(query.Get("model"))
	if err != nil {
		return err
	}
	all, free := []map[string]any{}, 0
	for i, slot := range h.Slots() {
		if slot.Request == "" {
			free++
		}
		all = append(all, map[string]any{
			"id": i, "n_ctx": h.Info.Context, "is_processing": slot.Request != "", "id_task": slot.Request,
			"n_prompt_tokens": slot.Prompt, "n_decoded": slot.Generated,
		})
	}
	if query.Has("fail_on_no_slot") && free == 0 {
		return &wire.Error{Status: http.StatusServiceUnavailable, Retry: 1, Message: "all slots are in use", Type: wire.TypeUnavailable, Code: "no_slot"}
	}
	return x.reply(all)
}

// slotAction handles POST /slots/{id}, by which llama.cpp's clients save, restore and erase the text of a slot.
func slotAction(*request) error {
	return &wire.Error{
		Status: http.StatusNotImplemented, Type: wire.TypeInvalid, Param: "action", Code: "unsupported_action",
		Message: "a slot belongs to no text, so there is nothing to save, restore or erase; the field session names a file that keeps keys and values (grove serve --session-dir)",
	}
}

// metrics handles GET /metrics.
func metrics(x *request) error {
	x.server.metrics.ServeHTTP(x.w, x.r)
	return nil
}
