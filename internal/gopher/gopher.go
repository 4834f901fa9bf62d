// Package gopher holds a family of small models of this project's own: they write text that looks like Go, and are
// there so that a first run, a draft model among it, needs no other file. Its README says what they are; train/ makes them.
package gopher

import (
	"compress/gzip"
	"embed"
	"io"
	"sync"
)

// The names of the models: one to use where no other is named, two that draft for it, and one that fills a canvas by masked diffusion.
const (
	Name          = "gopher-target"
	DraftName     = "gopher-draft"
	NanoName      = "gopher-nano"
	DiffusionName = "gopher-diffusion"
)

// The models are compressed in the program; the first use of one unpacks it, which takes some 30 ms for the larger two.
//
//go:embed gopher-target.q8_0.gguf.gz gopher-draft.q8_0.gguf.gz gopher-nano.q8_0.gguf.gz gopher-diffusion.q8_0.gguf.gz
var files embed.FS

var unpacked = map[string]func() []byte{}

func init() {
	for _, name := range Names() {
		unpacked[name] = sync.OnceValue(func() []byte { return unpack(name) })
	}
}

// unpack panics for a file that is damaged: the files are part of the program.
func unpack(name string) []byte {
	file, err := files.Open(name + ".q8_0.gguf.gz")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		panic(err)
	}
	model, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return model
}

// Model returns the GGUF file of gopher-target. The bytes are shared and must not be changed.
func Model() []byte { return Named(Name) }

// Names returns the names of the models, the largest first, and behind these that of the model of masked diffusion.
func Names() []string { return []string{Name, DraftName, NanoName, DiffusionName} }

// Named returns the GGUF file of a model by its name, nil where there is none. The bytes are shared and must not be changed.
func Named(name string) []byte {
	if f := unpacked[name]; f != nil {
		return f()
	}
	return nil
}
