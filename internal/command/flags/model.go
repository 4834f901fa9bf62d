package flags

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/find"
	"grove/internal/weights/gguf"
)

// Model is -m.
type Model struct {
	Path string `name:"model" short:"m" placeholder:"MODEL" var:"GROVE_MODEL" help:"A GGUF file, a directory with one, a Hugging Face folder, or a name that 'grove models' lists; without it, the model inside this program."`
}

// Find returns the path of the model that a path or a name stands for, or the name of a model inside this program. A name of no
// model here that can be pulled is pulled if a person at a terminal agrees; elsewhere the error says how.
func Find(name string) (string, error) {
	if _, err := os.Stat(name); err != nil && gopher.Named(name) != nil {
		return name, nil
	}
	path, err := find.System().Find(name)
	if isAddress(name) || isUnknown(err) {
		path, err = findOrPull(name, err)
	}
	if err != nil && strings.HasPrefix(name, "gopher") {
		err = fmt.Errorf("%w; this program has %s", err, strings.Join(gopher.Names(), ", "))
	}
	return path, exit.File(err)
}

// Open opens the model for generation. The draft model, the middle model and the guides of o are named as the model is.
func (f Model) Open(o grove.Options) (_ *grove.Model, err error) {
	if o.Draft != "" {
		if o.Draft, err = Find(o.Draft); err != nil {
			return nil, err
		}
	}
	if o.Middle != "" {
		if o.Middle, err = findBeside(o.Middle); err != nil {
			return nil, err
		}
	}
	o.Guides = slices.Clone(o.Guides)
	for i := range o.Guides {
		if o.Guides[i], err = findBeside(o.Guides[i]); err != nil {
			return nil, err
		}
	}
	if f.Path != "" {
		path, err := Find(f.Path)
		if err != nil {
			return nil, err
		}
		bar := terminal.Bytes("loading")
		defer bar.End()
		o.Progress = bar.ShowBytes
		m, err := grove.Open(path, o)
		return m, exit.File(err)
	}
	announce()
	m, err := grove.OpenBytes(gopher.Model(), o)
	return m, exit.File(err)
}

// File opens the file of the model, and loads nothing of it.
func (f Model) File() (*gguf.File, error) {
	if f.Path != "" {
		path, err := Find(f.Path)
		if err != nil {
			return nil, err
		}
		file, err := grove.OpenFile(path)
		return file, exit.File(err)
	}
	announce()
	file, err := gguf.Parse(gopher.Model())
	return file, exit.File(err)
}

// Tokenizer opens the file of the model as File does, and returns the tokenizer that it holds.
func (f Model) Tokenizer() (*tokenizer.Tokenizer, *gguf.File, error) {
	file, err := f.File()
	if err != nil {
		return nil, nil, err
	}
	t, err := tokenizer.FromGGUF(file)
	if err != nil {
		file.Close()
		return nil, nil, exit.File(err)
	}
	return t, file, nil
}

// OpenBench opens the model for measurements.
func (f Model) OpenBench(o bench.Options) (*bench.Model, error) {
	if f.Path != "" {
		path, err := Find(f.Path)
		if err != nil {
			return nil, err
		}
		bar := terminal.Bytes("loading")
		defer bar.End()
		o.Progress = bar.ShowBytes
		m, err := bench.Open(path, o)
		return m, exit.File(err)
	}
	announce()
	m, err := bench.OpenBytes(gopher.Name, gopher.Model(), o)
	return m, exit.File(err)
}

// announce says, once a command line, that the model is the one inside the program.
var announce = newAnnounce()

func newAnnounce() func() {
	return sync.OnceFunc(func() {
		fmt.Fprintf(os.Stderr, "grove: no model is named: using %s, which is part of this program (-m MODEL names another)\n", gopher.Name)
	})
}
