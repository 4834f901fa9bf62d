// Package gopher holds a family of small models of this project's own: they write text that looks like Go, and are
// there so that a first run, a draft model among it, needs no other file. Its README says what they are; train/ makes them.
package gopher

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the models
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

//go:embed gopher-target.q8_0.gguf
var target []byte

//go:embed gopher-draft.q8_0.gguf.gz
var draft []byte

//go:embed gopher-nano.q8_0.gguf.gz
var nano []byte

//go:embed gopher-diffusion.q8_0.gguf.gz
var diffusion []byte

// The models that the first run does without are compressed in the program; the first use of one unpacks it.
var (
	unpackedDraft     = sync.OnceValue(func() []byte { return unpack(draft) })
	unpackedNano      = sync.OnceValue(func() []byte { return unpack(nano) })
	unpackedDiffusion = sync.OnceValue(func() []byte { return unpack(diffusion) })
)

// unpack panics for a file that is damaged: the files are part of the program.
func unpack(file []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(file))
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
func Model() []byte { return target }

// Names returns the names of the models, the largest first, and behind these that of the model of masked diffusion.
func Names() []string { return []string{Name, DraftName, NanoName, DiffusionName} }

// Named returns the GGUF file of a model by its name, nil where there is none. The bytes are shared and must not be changed.
func Named(name string) []byte {
	switch name {
	case Name:
		return target
	case DraftName:
		return unpackedDraft()
	case NanoName:
		return unpackedNano()
	case DiffusionName:
		return unpackedDiffusion()
	}
	return nil
}
