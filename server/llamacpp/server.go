package llamacpp

import (
	"cmp"
	"net/http"
	"path/filepath"

	"grove/server/access"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// props handles GET /props. With autoload=false it does not open the model.
func props(x *driver.Request) error {
	query := x.R.URL.Query()
	if query.Get("autoload") == "false" {
		m, err := x.Server.Pool.State(query.Get("model"))
		if err != nil {
			return err
		}
		if m.Model == nil {
			return x.Reply(map[string]any{"model_alias": m.Name, "model_path": fileName(m), "build_info": driver.Fingerprint, "is_sleeping": m.Status == "unloaded"})
		}
	}
	h, err := x.Model(query.Get("model"))
	if err != nil {
		return err
	}
	m, err := x.Server.Pool.State(h.Name)
	if err != nil {
		return err
	}
	template := ""
	if t := h.Template(); t != nil { // conversations get the error
		template = t.Source()
	}
	s, p := wire.DefaultsNative.For(h.Model)
	return x.Reply(map[string]any{
		"methods": h.Model.Methods(), "chat_template": template, "draft": h.Info.Draft, "middle": h.Info.Middle, "guides": h.Info.Guides, "drafting": h.Info.Drafting,
		"model_alias": h.Name, "model_path": fileName(m), "total_slots": h.Info.Parallel, "build_info": driver.Fingerprint,
		"n_ctx_train": h.Info.TrainedContext,
		"diffusion":   h.Info.Diffusion,
		"default_generation_settings": map[string]any{"n_ctx": h.Info.Context, "params": map[string]any{
			"temperature": s.Temperature, "top_k": s.TopK, "top_p": s.TopP, "min_p": s.MinP, "n_predict": -1, "seed": -1,
			"repeat_penalty": cmp.Or(p.Repeat, 1), "repeat_last_n": p.RepeatWindow, "mirostat": s.Mirostat.Version, "xtc_probability": s.XTC.Probability,
		}},
		"is_sleeping": false, "modalities": map[string]bool{"vision": false, "audio": false},
	})
}

// fileName returns the name of a model's file without its directory, or the model's name where that is not known.
func fileName(m serving.State) string {
	if m.Path == "" {
		return m.Name
	}
	return filepath.Base(m.Path)
}

// modelRequest is the body of the routes that open and close a model.
type modelRequest struct {
	Model string `json:"model" bytes:"1024"`
}

// Tolerated implements [wire.Tolerant].
func (modelRequest) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "extra_args", Values: "[]", Client: "llama.cpp", Reason: "the settings of models are those that the server was started with"}}
}

// loadModel handles POST /models/load. It answers when the model is open.
func loadModel(x *driver.Request) error {
	return change(x, func(name string) error {
		_, err := x.Model(name)
		return err
	})
}

// unloadModel handles POST /models/unload.
func unloadModel(x *driver.Request) error { return change(x, x.Server.Pool.Unload) }

// change changes the model that the body names, which must be one that is served.
func change(x *driver.Request, do func(name string) error) error {
	var q modelRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	if q.Model == "" {
		return wire.Refuse("model", "model is missing")
	}
	m, err := x.Server.Pool.State(q.Model)
	if err != nil {
		return err
	}
	if err := do(m.Name); err != nil {
		return err
	}
	return x.Reply(map[string]any{"success": true, "model": m.Name})
}

// slots handles GET /slots. With fail_on_no_slot it answers 503 where all are in use. Of the texts of other keys, operators alone see
// more than that they are there.
func slots(x *driver.Request) error {
	query := x.R.URL.Query()
	m, err := x.Server.Pool.State(query.Get("model"))
	h := m.Model // no use of the model, which would wait behind those that wait for its memory
	if err != nil || h == nil {
		if h, err = x.Model(query.Get("model")); err != nil {
			return err
		}
	}
	caller := access.CallerOf(x.R.Context())
	all, free := []map[string]any{}, 0
	for i, slot := range h.Slots() {
		busy := slot.Request != ""
		if !busy {
			free++
		} else if slot.Owner != caller.Folder() && caller.Operates() != nil {
			slot = serving.Slot{}
		}
		all = append(all, map[string]any{
			"id": i, "n_ctx": h.Info.Context, "is_processing": busy, "id_task": slot.Request,
			"n_prompt_tokens": slot.Prompt, "n_decoded": slot.Generated,
		})
	}
	if query.Has("fail_on_no_slot") && free == 0 {
		return &wire.Error{Status: http.StatusServiceUnavailable, Retry: 1, Message: "all slots are in use", Type: wire.TypeUnavailable, Code: "no_slot"}
	}
	return x.Reply(all)
}

// slotAction handles POST /slots/{id}, by which llama.cpp's clients save, restore and erase the text of a slot.
func slotAction(*driver.Request) error {
	return &wire.Error{
		Status: http.StatusNotImplemented, Type: wire.TypeInvalid, Param: "action", Code: "unsupported_action",
		Message: "a slot belongs to no text, so there is nothing to save, restore or erase; the field session names a file that keeps keys and values (grove serve --session-dir)",
	}
}
