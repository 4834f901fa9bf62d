// Package gopher holds a small model of this project's own: it writes text that looks like Go, and is
// there so that a first run needs no other file. Its README says what it is and how it was made.
package gopher

import _ "embed" // the model

// Name is the model's name.
const Name = "gopher-4m"

//go:embed gopher-4m.q8_0.gguf
var model []byte

// Model returns the model's GGUF file: 4 million parameters, Q8_0, a context of 256 tokens. The bytes
// are shared and must not be changed.
func Model() []byte { return model }
