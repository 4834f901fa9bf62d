package modeltest

import (
	"bytes"
	"testing"

	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Spec describes a model of random weights; see [synthetic.Spec].
type Spec synthetic.Spec

// File makes the model's GGUF file in memory.
func (s Spec) File(tb testing.TB) *gguf.File {
	tb.Helper()
	metadata, tensors := s.Parts(tb)
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		tb.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// Parts makes the model's metadata and tensors, for tests that write or spoil a file.
func (s Spec) Parts(tb testing.TB) ([]gguf.KV, []tensor.View) {
	tb.Helper()
	metadata, tensors, err := synthetic.Spec(s).Parts()
	if err != nil {
		tb.Fatal(err)
	}
	return metadata, tensors
}
