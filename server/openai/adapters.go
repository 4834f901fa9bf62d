// adapters.go has the routes that list, open and close the adapters of a model and set their scales: those of llama.cpp's own
// server, and those of vLLM.

package openai

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"grove"
	"grove/server/access"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// AdapterRoutes returns the routes. dir is the directory of the adapters that clients may open; "": they may open none.
func AdapterRoutes(dir string) []driver.Route {
	route := func(body any, h driver.Handler, pattern string) driver.Route {
		return driver.Route{Access: driver.Ready, Handle: h, Patterns: []string{pattern}, Body: body}
	}
	d := directory(dir)
	return []driver.Route{
		route(nil, list, "GET /lora-adapters"),
		route(nil, scale, "POST /lora-adapters"),
		route(new(loadRequest), d.load, "POST /v1/load_lora_adapter"),
		route(new(unloadRequest), d.unload, "POST /v1/unload_lora_adapter"),
	}
}

// adapterBody is an adapter as llama.cpp lists it. The path is the file's name alone.
type adapterBody struct {
	ID     int     `json:"id"`
	Path   string  `json:"path"`
	Scale  float64 `json:"scale"`
	Name   string  `json:"name"`
	Rank   int     `json:"rank"`
	Bytes  int     `json:"memory_bytes"`
	Task   string  `json:"task_name"`
	Prefix string  `json:"prompt_prefix"`

	InvocationText string  `json:"alora_invocation_string,omitempty"`
	Invocation     []int32 `json:"alora_invocation_tokens,omitempty"`
}

// list handles GET /lora-adapters, of the model that the query names.
func list(x *driver.Request) error {
	h, err := x.Model(x.R.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	all := []adapterBody{}
	for _, a := range h.Model.Adapters() {
		b := adapterBody{ID: a.ID, Path: filepath.Base(a.Path), Scale: a.Scale, Name: a.Name, Rank: a.Rank, Bytes: a.Bytes}
		for _, id := range a.Invocation {
			b.Invocation = append(b.Invocation, int32(id))
		}
		if len(a.Invocation) > 0 {
			if b.InvocationText, err = h.Model.Detokenize(a.Invocation); err != nil {
				return err
			}
		}
		all = append(all, b)
	}
	return x.Reply(all)
}

// scale handles POST /lora-adapters: the scales of requests that name no adapters. Those that are not named get 0.
func scale(x *driver.Request) error {
	h, err := operated(x, x.R.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	var scales []wire.Adapter
	if err := x.Read(&scales); err != nil {
		return err
	}
	if err := h.Model.ScaleAdapters(wire.Adapters(scales)); err != nil {
		return refusal("id", err)
	}
	return x.Reply(map[string]bool{"success": true})
}

// operated returns a model whose adapters the caller may change: they change the answers of others.
func operated(x *driver.Request, model string) (*serving.OpenModel, error) {
	if err := access.CallerOf(x.R.Context()).Operates(); err != nil {
		return nil, err
	}
	return x.Model(model)
}

// directory is the directory of the adapters that clients may open.
type directory string

// loadRequest is the body of vLLM's route, and the name of the model where several are served.
type loadRequest struct {
	Name  string `json:"lora_name" bytes:"256"`
	Path  string `json:"lora_path" bytes:"1024"`
	Model string `json:"model" bytes:"1024"`
}

// load handles POST /v1/load_lora_adapter: the adapter works for requests that name it.
func (d directory) load(x *driver.Request) error {
	if err := d.allows(); err != nil {
		return err
	}
	var q loadRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	h, err := operated(x, q.Model)
	switch {
	case err != nil:
		return err
	case q.Name == "" || q.Path == "":
		return wire.Refuse("lora_name", "lora_name and lora_path: both must be given")
	case !filepath.IsLocal(q.Path):
		return wire.Refuse("lora_path", "lora_path: %q is not a path within the directory of adapters (grove serve --lora-dir)", wire.Clip(q.Path))
	}
	if _, err := x.Server.Pool.State(q.Name); err == nil {
		return wire.Refuse("lora_name", "lora_name: a model is served as %q", wire.Clip(q.Name))
	}
	root, err := os.OpenRoot(string(d)) // no link leads out of it
	if err != nil {
		return fmt.Errorf("adapters: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat(q.Path); err != nil {
		return &wire.Error{Status: http.StatusNotFound, Type: wire.TypeInvalid, Param: "lora_path", Code: "adapter_not_found",
			Message: fmt.Sprintf("lora_path: there is no adapter %q", wire.Clip(q.Path))}
	}
	if _, err := h.Model.LoadAdapter(grove.AdapterFile{Path: filepath.Join(string(d), q.Path), Name: q.Name}); err != nil {
		return d.hidden(refusal("lora_path", err))
	}
	return x.Reply(map[string]any{"success": true, "message": fmt.Sprintf("Success: LoRA adapter '%s' added successfully.", q.Name)})
}

// hidden returns an error whose text does not tell where the directory is.
func (d directory) hidden(err error) error {
	if known := new(wire.Error); errors.As(err, &known) {
		known.Message = strings.ReplaceAll(known.Message, filepath.Clean(string(d))+string(filepath.Separator), "")
	}
	return err
}

// unloadRequest is the body of vLLM's route.
type unloadRequest struct {
	Name  string `json:"lora_name" bytes:"256"`
	ID    *int   `json:"lora_int_id" range:"0 *"` // of no meaning here, as in vLLM
	Model string `json:"model" bytes:"1024"`
}

// unload handles POST /v1/unload_lora_adapter. Answers that use the adapter go on with it.
func (d directory) unload(x *driver.Request) error {
	if err := d.allows(); err != nil {
		return err
	}
	var q unloadRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	h, err := operated(x, q.Model)
	if err != nil {
		return err
	}
	if err := h.Model.UnloadAdapter(q.Name); err != nil {
		return refusal("lora_name", err)
	}
	return x.Reply(map[string]any{"success": true, "message": fmt.Sprintf("Success: LoRA adapter '%s' removed successfully.", q.Name)})
}

// allows refuses all where clients may open no adapters.
func (d directory) allows() error {
	if d == "" {
		return &wire.Error{Status: http.StatusForbidden, Type: wire.TypeInvalid, Code: "adapters_not_allowed",
			Message: "adapters are not opened or closed by clients; grove serve --lora-dir DIR lets them open those of a directory"}
	}
	return nil
}

// refusal is an error of the library as an answer.
func refusal(field string, err error) error {
	var option *grove.OptionError
	switch {
	case errors.Is(err, grove.ErrMemory):
		return &wire.Error{Status: http.StatusRequestEntityTooLarge, Type: wire.TypeInvalid, Param: field, Code: "memory_limit", Message: wire.Plain(err)}
	case errors.Is(err, grove.ErrAdapter):
		return &wire.Error{Status: http.StatusNotFound, Type: wire.TypeInvalid, Param: field, Code: "adapter_not_found", Message: field + ": " + wire.Plain(err)}
	case errors.As(err, &option):
		return wire.Refuse(field, "%s: %s", field, wire.Plain(err))
	}
	return err
}
