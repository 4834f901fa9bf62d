package ollama

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"grove"
	"grove/internal/mmap"
	"grove/internal/weights/gguf"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// details describe a model as this API does.
type details struct {
	Parent     string   `json:"parent_model"`
	Format     string   `json:"format"`
	Family     string   `json:"family"`
	Families   []string `json:"families"`
	Parameters string   `json:"parameter_size"`
	Type       string   `json:"quantization_level"`
	Context    int      `json:"context_length,omitempty"`
}

// listed is a model in a list.
type listed struct {
	Name     string    `json:"name"`
	Model    string    `json:"model"`
	Modified time.Time `json:"modified_at,omitzero"`
	Size     int64     `json:"size"`
	Digest   string    `json:"digest"` // of the file's place, size and time: files are not read as a whole to name them
	Details  details   `json:"details"`

	// These are of models that are open.
	Expires time.Time `json:"expires_at,omitzero"`
	VRAM    *int64    `json:"size_vram,omitempty"`
	Context int       `json:"context_length,omitempty"`
}

// never is when a model is closed that stays open.
const never = 100 * 365 * 24 * time.Hour

// tags handles GET /api/tags.
func tags(x *driver.Request) error {
	all := []listed{}
	for _, m := range x.Server.Pool.States() {
		l, err := list(x, m)
		if err != nil {
			x.Server.Log.WarnContext(x.R.Context(), "a model is not listed", "model", m.Name, "error", err)
			continue
		}
		all = append(all, l)
	}
	return x.Reply(map[string]any{"models": all})
}

// running handles GET /api/ps.
func running(x *driver.Request) error {
	all := []listed{}
	for _, m := range x.Server.Pool.Open() {
		l, err := list(x, m)
		if err != nil { // the file may be gone, and the model is open
			x.Server.Log.WarnContext(x.R.Context(), "a model has no details", "model", m.Name, "error", err)
		}
		l.Size, l.Modified = int64(m.Model.Memory()), time.Time{}
		l.Expires, l.VRAM, l.Context = m.Closes, new(int64), m.Model.Info.Context
		if l.Expires.IsZero() {
			l.Expires = time.Now().Add(never)
		}
		all = append(all, l)
	}
	return x.Reply(map[string]any{"models": all})
}

// list returns a model as lists have it; with an error, it has no details.
func list(x *driver.Request, m serving.State) (l listed, err error) {
	l = listed{Name: m.Name, Model: m.Name}
	d, err := x.Server.Describe(m)
	if err != nil || m.Path == "" {
		return l, err
	}
	l.Size, l.Modified, l.Digest = d.Bytes, d.Modified, digest(m, d)
	l.Details = details{Format: "gguf", Family: d.Arch, Families: []string{d.Arch}, Parameters: size(d.Params), Type: d.Type.String(), Context: d.Context}
	if m.Alias != nil {
		l.Details.Parent, l.Modified = m.Alias.Of, m.Alias.Made
	}
	return l, nil
}

// digest returns a name for what a model is: another one where its file or what the name adds to it changes.
func digest(m serving.State, d driver.Described) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n%d\n", m.Path, d.Bytes, d.Modified.UnixNano())
	if m.Alias != nil {
		h.Write(m.Alias.Record)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// size returns a number of weights as this API writes it.
func size(n int) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1fB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2fK", float64(n)/1e3)
}

// nameRequest is the body of a route about a model, which has two names for it.
type nameRequest struct {
	Model string `json:"model" bytes:"1024"`
	Name  string `json:"name" bytes:"1024"`
}

// name returns the name of the model.
func (q *nameRequest) name() (string, error) {
	if name := cmp.Or(q.Model, q.Name); name != "" {
		return name, nil
	}
	return "", wire.Refuse("model", "model is missing")
}

// showRequest is the body of /api/show.
type showRequest struct {
	nameRequest
	System   string                     `json:"system"`
	Template string                     `json:"template"`
	Options  map[string]json.RawMessage `json:"options" most:"256" bytes:"256"`
	Verbose  bool                       `json:"verbose"`
}

// show handles POST /api/show.
func show(x *driver.Request) error {
	var q showRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	name, err := q.name()
	if err != nil {
		return err
	}
	if q.System != "" || q.Template != "" || len(q.Options) > 0 {
		return wire.Unsupported("template", "a model cannot be shown with other settings than its own")
	}
	m, err := x.Server.Pool.State(name)
	if err != nil {
		return err
	}
	l, err := list(x, m)
	if err != nil {
		return err
	}
	body := map[string]any{
		"modelfile": "# grove reads no model files\nFROM " + m.Name, "parameters": "", "template": "", "details": l.Details, "modified_at": l.Modified,
		"model_info": map[string]any{}, "capabilities": append([]string{}, x.Server.Capabilities(m)...),
	}
	if m.Path != "" {
		err = describe(m.Path, q.Verbose, body)
	}
	if err == nil && m.Alias != nil {
		err = describeName(m.Alias, body)
	}
	if err != nil {
		return err
	}
	return x.Reply(body)
}

// describe adds what the header of a file says. Lists, such as the vocabulary, are null unless all is asked for.
func describe(path string, verbose bool, body map[string]any) error {
	f, err := grove.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return mmap.Catch(func() error {
		info := map[string]any{}
		for _, kv := range f.Metadata {
			v := kv.Value.Any()
			switch {
			case kv.Key == "tokenizer.chat_template":
				body["template"] = v
			case kv.Key == "general.license" || strings.HasPrefix(kv.Key, "general.license."):
				body["license"] = v
				info[kv.Key] = v
			case kv.Value.Kind() == gguf.Array && !verbose:
				info[kv.Key] = nil
			default:
				info[kv.Key] = v
			}
		}
		body["model_info"] = info
		return nil
	})
}
