package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/mmap"
	"grove/internal/weights/find"
	"grove/internal/weights/gguf"
	"grove/internal/weights/ollama"
)

// showCommand describes a model.
type showCommand struct {
	flags.Named
	flags.JSON
}

// shownModel is the object that --json writes.
type shownModel struct {
	Name         string         `json:"name"`
	Arch         string         `json:"architecture"`
	Params       int            `json:"parameters"`
	Context      int            `json:"context"`
	Embedding    int            `json:"embedding"`
	Type         string         `json:"type"`
	Bytes        int64          `json:"bytes"`
	Capabilities []string       `json:"capabilities"`
	Template     bool           `json:"chat_template"`
	Sampling     map[string]any `json:"sampling"`
	License      string         `json:"license"`
	Path         string         `json:"path"`
	System       string         `json:"system,omitempty"`
	Stop         []string       `json:"stop,omitempty"`
	Adapters     []string       `json:"adapters,omitempty"`
	Notes        []string       `json:"notes,omitempty"` // what of the model is not used

	order []string // of the settings in Sampling
}

// Run implements the command.
func (c *showCommand) Run() error {
	f, err := c.File()
	if err != nil {
		return err
	}
	defer f.Close()
	m := shownModel{Sampling: map[string]any{}}
	if err := mmap.Catch(func() error { return m.read(f) }); err != nil {
		return exit.File(err)
	}
	if c.JSON.On {
		e := json.NewEncoder(harmless.JSON(terminal.Stdout))
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(m)
	}
	return m.write()
}

// samplingPrefix begins the keys of the settings that the makers of a model recommend.
const samplingPrefix = "general.sampling."

// read reads the header of a file.
func (m *shownModel) read(f *gguf.File) error {
	d, err := find.DescribeFile(f)
	if err != nil {
		return err
	}
	m.Arch, m.Params, m.Context, m.Type, m.Bytes, m.Capabilities = d.Arch, d.Params, d.Context, d.Type.String(), d.Bytes, d.Capabilities
	for key, to := range map[string]*string{"general.name": &m.Name, "general.license": &m.License} {
		if *to, _, err = f.String(key); err != nil {
			return err
		}
	}
	if m.Embedding, _, err = f.Uint(d.Arch + ".embedding_length"); err != nil {
		return err
	}
	if _, m.Template, err = f.String("tokenizer.chat_template"); err != nil {
		return err
	}
	for _, kv := range f.Metadata {
		if name, ok := strings.CutPrefix(kv.Key, samplingPrefix); ok {
			m.Sampling[name] = setting(kv.Value.Any())
			m.order = append(m.order, name)
		}
	}
	if paths := f.Paths(); len(paths) > 0 {
		m.Path = paths[0]
	}
	m.Adapters = f.Adapters
	for key, to := range map[string]*[]string{ollama.KeyStop: &m.Stop, ollama.KeyNotes: &m.Notes} {
		if *to, _, err = f.Strings(key); err != nil {
			return err
		}
	}
	m.System, _, err = f.String(ollama.KeySystem)
	return err
}

// setting returns a value that JSON has: a number that is not finite becomes a text.
func setting(v any) any {
	switch x := v.(type) {
	case float32:
		if x-x != 0 {
			return fmt.Sprint(x)
		}
	case float64:
		if x-x != 0 {
			return fmt.Sprint(x)
		}
	}
	return v
}

// write writes the description as lines.
func (m *shownModel) write() error {
	w := tabwriter.NewWriter(terminal.Stdout, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, harmless.Line(fmt.Sprintf(format, args...)))
	}
	line("name", "%s", m.Name)
	line("architecture", "%s", m.Arch)
	line("parameters", "%s", rounded(int64(m.Params), ""))
	line("context", "%d", m.Context)
	line("embedding", "%d", m.Embedding)
	line("type", "%s", m.Type)
	line("size", "%s", rounded(m.Bytes, "B"))
	line("capabilities", "%s", strings.Join(m.Capabilities, ", "))
	line("chat template", "%s", map[bool]string{true: "yes", false: "no"}[m.Template])
	var settings []string
	for _, name := range m.order {
		settings = append(settings, fmt.Sprintf("%s %v", name, m.Sampling[name]))
	}
	if settings == nil {
		settings = []string{"the file recommends none"}
	}
	line("sampling", "%s", strings.Join(settings, ", "))
	if m.License == "" {
		m.License = "the file names none"
	}
	line("license", "%s", m.License)
	if m.Path != "" {
		line("path", "%s", m.Path)
	}
	if m.System != "" {
		line("system", "%q", m.System)
	}
	if len(m.Stop) > 0 {
		line("stop", "%q", m.Stop)
	}
	for _, path := range m.Adapters {
		line("adapter", "%s", path)
	}
	for _, note := range m.Notes {
		line("not used", "%s", note)
	}
	return w.Flush()
}
