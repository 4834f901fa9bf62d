package ollama

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"grove"
	"grove/server/access"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// made is what a name of a client is made of, besides the served model.
type made struct {
	System     string          `json:"system,omitempty" bytes:"1048576"`
	Messages   []message       `json:"messages,omitempty" most:"1024"`
	Parameters *parameters     `json:"parameters,omitempty"`
	License    json.RawMessage `json:"license,omitempty"` // a text or a list of texts, for who asks for it
}

// parameters are options, kept as they were given.
type parameters struct {
	options
	given json.RawMessage
}

// ReadJSON implements [wire.Own].
func (p *parameters) ReadJSON(r *wire.Reader) (err error) {
	if p.given, err = r.Raw(); err != nil {
		return err
	}
	return r.Within(p.given, &p.options)
}

// Like implements [wire.Like].
func (parameters) Like() any { return options{} }

// MarshalJSON returns what was given.
func (p *parameters) MarshalJSON() ([]byte, error) { return p.given, nil }

// createRequest is the body of /api/create.
type createRequest struct {
	nameRequest
	made

	From      string                     `json:"from" bytes:"1024"`
	Template  string                     `json:"template"`
	Files     map[string]json.RawMessage `json:"files" most:"256" bytes:"1024"`
	Adapters  map[string]json.RawMessage `json:"adapters" most:"256" bytes:"1024"`
	Quantize  string                     `json:"quantize" bytes:"256"`
	Modelfile string                     `json:"modelfile"`
	Stream    *bool                      `json:"stream"`
}

// check names all that no name can be made of.
func (q *createRequest) check() error {
	var all []error
	refuse := func(is bool, field, reason string) {
		if is {
			all = append(all, wire.Unsupported(field, reason))
		}
	}
	refuse(len(q.Files) > 0, "files", "a name is made of a model that is served; grove convert makes files, and grove serve -m serves them")
	refuse(len(q.Adapters) > 0, "adapters", "a name is made of a model that is served; grove serve --lora adds adapters to it")
	refuse(q.Quantize != "", "quantize", "a name has the weights of its model; grove quantize makes others")
	refuse(q.Template != "", "template", "a name has the template of its model, which grove serve --chat-template chooses")
	refuse(q.Modelfile != "", "modelfile", "ollama takes it no more, either; from, system, messages, parameters and license are its parts")
	if len(all) == 0 && q.From == "" {
		all = append(all, wire.Refuse("from", "from is missing: the model that is to have the name"))
	}
	return wire.All(all...)
}

// create handles POST /api/create: a name of a served model, with defaults of its own.
func create(x *driver.Request) error {
	var q createRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	name, err := q.name()
	if err = wire.All(err, q.check()); err != nil {
		return err
	}
	steps := []string{"reading " + wire.Clip(q.From)}
	for _, part := range []struct {
		name string
		is   bool
	}{{"system", q.System != ""}, {"messages", q.Messages != nil}, {"parameters", q.Parameters != nil}, {"license", q.License != nil}} {
		if part.is {
			steps = append(steps, "creating "+part.name)
		}
	}
	if err := putName(x, name, q.From, q.made); err != nil {
		return err
	}
	if q.Stream != nil && !*q.Stream {
		return x.Reply(progress{Status: "success"})
	}
	out := driver.NewStream(x, driver.Lines)
	for _, s := range append(steps, "writing manifest", "success") {
		if err := out.Send(progress{Status: s}); err != nil {
			return err
		}
	}
	return out.Close()
}

// copyRequest is the body of /api/copy.
type copyRequest struct {
	Source      string `json:"source" bytes:"1024"`
	Destination string `json:"destination" bytes:"1024"`
}

// copyName handles POST /api/copy: another name of a model.
func copyName(x *driver.Request) error {
	var q copyRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	var all []error
	for field, value := range map[string]string{"source": q.Source, "destination": q.Destination} {
		if value == "" {
			all = append(all, wire.Refuse(field, "%s is missing", field))
		}
	}
	if err := wire.All(all...); err != nil {
		return err
	}
	if err := putName(x, q.Destination, q.Source, made{}); err != nil {
		return err
	}
	x.W.WriteHeader(http.StatusOK)
	return nil
}

// names are the names that clients may make.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,255}$`)

// putName makes a name of the model from, or replaces it. What m leaves out is that of from, where that is such a name itself.
func putName(x *driver.Request, name, from string, m made) error {
	if err := access.CallerOf(x.R.Context()).Operates(); err != nil {
		return err
	}
	pool := x.Server.Pool
	if !names.MatchString(name) {
		return wire.Refuse("model", "model: the name %q must have 1 to 256 letters, digits and characters of ._:/@+-, and begin with a letter or digit", wire.Clip(name))
	}
	if _, adapter := pool.Adapter(name); adapter != nil {
		return taken(name)
	}
	if pool.Names().Get(name) == nil {
		if _, err := pool.State(name); err == nil {
			return taken(name)
		}
	}
	s, err := pool.State(from)
	if err != nil {
		return err
	}
	r := record{Name: name, From: s.Name, Made: time.Now().UTC().Format(time.RFC3339Nano), made: m}
	if s.Alias != nil {
		before, err := readRecord(s.Alias.Record)
		if err == nil {
			err = r.inherit(before)
		}
		if err != nil {
			return err
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	a, err := restore(text)
	if err != nil {
		return err
	}
	return pool.Names().Put(a)
}

func taken(name string) error {
	return &wire.Error{
		Status: http.StatusConflict, Type: wire.TypeInvalid, Param: "model", Code: "name_taken",
		Message: fmt.Sprintf("the server has a model %q of its own; choose another name", wire.Clip(name)),
	}
}

// record is a name as it is kept.
type record struct {
	Name string `json:"name" bytes:"1024"`
	From string `json:"from" bytes:"4096"` // the served model
	Made string `json:"made" bytes:"64"`
	made
}

func readRecord(text json.RawMessage) (r record, err error) { return r, wire.Decode(text, &r) }

// inherit sets what is absent to that of another name.
func (r *record) inherit(o record) error {
	r.From, r.System = o.From, cmp.Or(r.System, o.System)
	if r.Messages == nil {
		r.Messages = o.Messages
	}
	if r.License == nil {
		r.License = o.License
	}
	if o.Parameters == nil {
		return nil
	}
	all := map[string]json.RawMessage{}
	for _, p := range []*parameters{o.Parameters, r.Parameters} {
		if p == nil {
			continue
		}
		if err := json.Unmarshal(p.given, &all); err != nil {
			return err
		}
	}
	text, err := json.Marshal(all)
	r.Parameters = &parameters{given: text}
	return err
}

// restore returns the name of a record.
func restore(text json.RawMessage) (*serving.Alias, error) {
	r, err := readRecord(text)
	if err != nil {
		return nil, err
	}
	d := &serving.Defaults{System: r.System}
	for i := range r.Messages {
		m, err := r.Messages[i].toTemplate()
		if err != nil {
			return nil, driver.RefuseMessage(i, err)
		}
		d.Begins = append(d.Begins, m)
	}
	if p := r.Parameters; p != nil {
		if err := p.check(); err != nil {
			return nil, err
		}
		d.Sampling = p.Sampling
		if p.Predict != nil {
			d.MaxTokens = max(0, *p.Predict)
		}
		wire.Set(&d.Context, p.Context)
	}
	at, err := time.Parse(time.RFC3339Nano, r.Made)
	if err != nil {
		return nil, fmt.Errorf("the name %q: %w", wire.Clip(r.Name), err)
	}
	return &serving.Alias{Name: r.Name, Of: r.From, Defaults: d, Made: at, Record: text}, nil
}

// check refuses what is of one request, or of no name.
func (p *parameters) check() error {
	if err := p.options.check(); err != nil {
		return err
	}
	if err := p.checkNewline(&grove.Penalties{Repeat: or(p.Repeat), Presence: or(p.Presence), Frequency: or(p.Frequency)}); err != nil {
		return err
	}
	var all []error
	for _, f := range []struct {
		name string
		is   bool
	}{
		{"session", p.Session != ""}, {"timeout", p.Timeout != nil}, {"id_slot", p.Slot != nil}, {"priority", p.Priority != 0}, {"cache_salt", p.CacheSalt != ""},
		{"cache_prompt", p.CachePrompt != nil}, {"lora", p.Lora != nil}, {"search_progress", p.SearchProgress}, {"diffusion", p.Diffusion != nil},
	} {
		if f.is {
			all = append(all, wire.Unsupported(f.name, "it is a matter of each request"))
		}
	}
	return wire.All(all...)
}

func or(p *float32) float32 {
	if p == nil {
		return 0
	}
	return *p
}

// Restore reads the names that clients made of models from a file, which keeps those that they make from now on.
func Restore(n *serving.Names, file string) error { return n.Restore(file, restore) }

// describeName adds to the answer of /api/show what a name is made of.
func describeName(a *serving.Alias, body map[string]any) error {
	r, err := readRecord(a.Record)
	if err != nil {
		return err
	}
	file := &strings.Builder{}
	fmt.Fprintf(file, "FROM %s\n", a.Of)
	if r.System != "" {
		body["system"] = r.System
		fmt.Fprintf(file, "SYSTEM \"\"\"%s\"\"\"\n", r.System)
	}
	lines := &strings.Builder{}
	for _, p := range r.Parameters.lines() {
		fmt.Fprintf(lines, "%-30s %s\n", p[0], p[1])
		fmt.Fprintf(file, "PARAMETER %s %s\n", p[0], p[1])
	}
	for _, m := range r.Messages {
		fmt.Fprintf(file, "MESSAGE %s %q\n", m.Role, string(m.Content))
	}
	if r.Messages != nil {
		body["messages"] = r.Messages
	}
	if r.License != nil {
		body["license"] = r.License
	}
	body["modelfile"], body["parameters"] = file.String(), strings.TrimSuffix(lines.String(), "\n")
	return nil
}

// lines returns the parameters as names and values; a list has a line for each element.
func (p *parameters) lines() (all [][2]string) {
	if p == nil {
		return nil
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(p.given, &values) != nil { // not reached: it was read
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list := []json.RawMessage{values[name]}
		if values[name][0] == '[' {
			_ = json.Unmarshal(values[name], &list)
		}
		for _, v := range list {
			all = append(all, [2]string{name, string(v)})
		}
	}
	return all
}
