package gopher_test

import (
	"testing"

	"grove/gguf"
	"grove/gopher"
	"grove/tensor"
)

// TestModel checks that the file is what the README says.
func TestModel(t *testing.T) {
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]gguf.Value{
		"general.name":                 gguf.Of(gopher.Name),
		"general.license":              gguf.Of("bsd-3-clause"),
		"general.file_type":            gguf.Of(uint32(7)),
		"general.quantization_version": gguf.Of(uint32(2)),
	} {
		if got, _ := f.Lookup(key); !got.Equal(want) {
			t.Errorf("%s is %v, want %v", key, got.Any(), want.Any())
		}
	}
	for _, v := range f.Tensors {
		want := tensor.Q8_0
		if len(v.Shape) == 1 {
			want = tensor.F32
		}
		if v.Type != want {
			t.Errorf("tensor %q of shape %v is %v, want %v", v.Name, v.Shape, v.Type, want)
		}
	}
}
