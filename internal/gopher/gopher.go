// Package gopher holds a family of small models of this project's own: they write text that looks like Go, and are
// there so that a first run, a draft model among it, needs no other file. Its README says what they are; train/ makes them.
package gopher

import _ "embed" // the models

// The names of the models: one to use where no other is named, two that draft for it, and one that fills a canvas by masked diffusion.
const (
	Name          = "gopher-target"
	DraftName     = "gopher-draft"
	NanoName      = "gopher-nano"
	DiffusionName = "gopher-diffusion"
)

//go:embed gopher-target.q8_0.gguf
var target []byte

//go:embed gopher-draft.q8_0.gguf
var draft []byte

//go:embed gopher-nano.q8_0.gguf
var nano []byte

//go:embed gopher-diffusion.q8_0.gguf
var diffusion []byte

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
		return draft
	case NanoName:
		return nano
	case DiffusionName:
		return diffusion
	}
	return nil
}
