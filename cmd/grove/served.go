// served.go has the models that commands open behind the server's routes.

package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/gopher"
	"grove/internal/weights/find"
	"grove/server/serving"
)

// ServedFlags say which models are served, and how they are opened.
type ServedFlags struct {
	flags.Context
	flags.Threads
	flags.Cache
	flags.Parallel
	flags.Repack
	flags.Draft
	flags.Guides
	flags.Adapters
	flags.Skip
	flags.Reasoning
	flags.PreTokenizer

	Model       []string    `short:"m" sep:"none" placeholder:"[NAME=]MODEL" var:"GROVE_MODEL" help:"A model to serve, as other commands take it, and its name in requests; may be given several times. Without it, the model inside this program."`
	Template    []string    `name:"chat-template" sep:"none" placeholder:"[NAME=]TEMPLATE" var:"GROVE_CHAT_TEMPLATE" help:"Chat template of the model that is served as NAME, or of all models; may be given several times. TEMPLATE is as for grove chat. Without it, each model's own."`
	MemoryLimit flags.Bytes `placeholder:"BYTES" var:"GROVE_MEMORY_LIMIT" help:"Memory for weights, caches and requests, such as 6GiB; without it, the memory of the machine."`
	Forget      bool        `var:"GROVE_FORGET" help:"Do not read or write what drafting learns of the texts of clients without keys and salts, in the cache directory of the user."`
}

// Model is a model to serve. Path "" is the model inside the program, Template "" the model's own.
type Model struct{ Name, Path, Template string }

// Models returns the models of the flags. More says that others are served besides.
func (c *ServedFlags) Models(more bool) (all []Model, err error) {
	if len(c.Model) == 0 {
		all = []Model{{Name: gopher.Name}}
	}
	for _, m := range c.Model {
		name, path, named := strings.Cut(m, "=")
		if _, err := os.Stat(m); err == nil || !named || strings.Contains(name, "://") {
			name, path = "", m
		}
		given := path
		if path, err = flags.Find(path); err != nil {
			return nil, err
		}
		if err := readHeader(path); err != nil {
			return nil, err
		}
		if name == "" {
			name = ServedName(given, path)
		}
		all = append(all, Model{Name: name, Path: path})
	}
	if _, err := c.Adapters.Files(false); err != nil {
		return nil, err
	}
	if len(all) > 1 || more {
		if err := c.ofOne(); err != nil {
			return nil, err
		}
	}
	for i := range all {
		all[i].Template = c.TemplateOf(all, all[i].Name)
	}
	return all, nil
}

// ofOne returns an error where something is given that is for exactly one model.
func (c *ServedFlags) ofOne() error {
	for _, f := range []struct {
		flag, needs string
		given       bool
	}{
		{"lora", "adapters need", len(c.Lora) > 0}, {"draft", "a draft model needs", c.Draft.Path != ""}, {"judge", "a head needs", c.Judge != ""},
		{"middle", "a middle model needs", c.Middle != ""}, {"guide", "a guide needs", len(c.Guide) > 0}, {"datastore", "a datastore needs", c.Store != ""},
		{"heads", "heads need", c.Heads != "" && c.Heads != grove.NoHeads}, {"skip-adapters", "adapters need", c.SkipAdapters != ""},
	} {
		if f.given {
			return &grove.OptionError{Err: fmt.Errorf("grove: --%s: several models are served; %s exactly one", f.flag, f.needs)}
		}
	}
	return nil
}

// readHeader refuses a model that is missing, or whose header is broken, before the server listens.
func readHeader(path string) error {
	f, err := flags.Model{Path: path}.File()
	if err != nil {
		return err
	}
	return exit.File(f.Close())
}

// ServedName returns the name in requests of a model that was given by a path or a name: that of its file; of a blob of ollama or a snapshot of
// Hugging Face, whose names are hashes, the name by which it was given.
func ServedName(given, path string) string {
	name, isGGUF := strings.CutSuffix(filepath.Base(path), ".gguf")
	if _, err := os.Stat(given); err != nil && !isGGUF {
		return given
	}
	return name
}

// TemplateOf returns the chat template of a model: that of the last flag that names the model, else of the last that names no model.
func (c *ServedFlags) TemplateOf(all []Model, model string) string {
	own, any := "", ""
	for _, text := range c.Template {
		name, template, _ := strings.Cut(text, "=")
		switch {
		case name == model:
			own = template
		case !slices.ContainsFunc(all, func(m Model) bool { return m.Name == name }):
			any = text
		}
	}
	return cmp.Or(own, any)
}

// Settings names what answers of a model depend on besides its file.
func (c *ServedFlags) Settings(n Model) string {
	return serving.Settings(string(c.Cache.Type), "template", n.Template, "adapters", strings.Join(c.Lora, " "), "skip adapters", c.SkipAdapters,
		"guides", strings.Join(c.Guide, " "), "judge", c.Judge, "reasoning", strings.Trim(c.Reasoning.How, "auto"))
}

// context returns the tokens of --context, or those that a model was trained for where these are fewer, which it logs.
func (c *ServedFlags) context(n Model, log *slog.Logger) (int, error) {
	asked := int(c.Context.N)
	if asked == 0 {
		return 0, nil
	}
	f, err := flags.Model{Path: n.Path}.File()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	d, err := find.DescribeFile(f)
	if err != nil || d.Context <= 0 || d.Context >= asked {
		return asked, err
	}
	log.Warn("the context is less than --context: the model was trained for no more", "model", n.Name, "tokens", d.Context, "asked", asked)
	return d.Context, nil
}

// Open opens a model with options that no flag here names. It logs the context, and recommendations of the model that are not used.
func (c *ServedFlags) Open(n Model, o grove.Options, log *slog.Logger) (*grove.Model, error) {
	context, err := c.context(n, log)
	if err != nil {
		return nil, err
	}
	o.Context, o.CacheType, o.Threads, o.Parallel, o.NoRepack = context, string(c.Cache.Type), int(c.Threads.N), int(c.Parallel.N), c.Repack.Off
	o.ChatTemplate, o.Reasoning, o.Forget, o.SkipAdapters, o.Log = n.Template, grove.Reasoning(c.Reasoning.How), c.Forget, c.SkipAdapters, log.With("model", n.Name)
	o.Guides = c.Guide
	c.Beside(&o)
	m, err := flags.Model{Path: n.Path}.Open(o)
	if err != nil {
		return nil, err
	}
	for _, line := range m.Advice().Ignored {
		log.Warn("a setting that the model recommends is not used", "model", n.Name, "reason", line)
	}
	return m, nil
}
