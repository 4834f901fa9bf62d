//go:build unix

package grove_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"grove"
	"grove/gguf"
	"grove/internal/mmap"
	"grove/quant"
	"grove/tensor"
)

// inPlace writes the golden model with matrices of a type whose weights are read from the mapped file.
func inPlace(t *testing.T) string {
	t.Helper()
	f, err := gguf.Open(goldenModel)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors := slices.Clone(f.Tensors)
	for i, v := range tensors {
		if len(v.Shape) != 2 {
			continue
		}
		x := make([]float32, v.Elems())
		row, _ := tensor.Q4_0.RowBytes(v.Shape[1])
		data := make([]byte, row*v.Shape[0])
		if err := errors.Join(quant.Unpack(v.Type, x, v.Data), quant.Pack(tensor.Q4_0, data, x)); err != nil {
			t.Fatal(err)
		}
		tensors[i].Type, tensors[i].Data = tensor.Q4_0, data
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := gguf.WriteFile(path, f.Metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFileShrinks cuts a file short while its model is open: generation ends with an error that names
// the file, whichever thread met the fault, and the process goes on.
func TestFileShrinks(t *testing.T) {
	for _, threads := range []int{1, 2} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			path := inPlace(t)
			m := open(t, path, grove.Options{Threads: threads})
			r := grove.Request{Prompt: "hello", MaxTokens: 3}
			generate := func() (string, error) {
				g, err := m.Generate(context.Background(), r)
				if err != nil {
					t.Fatal(err)
				}
				return g.Text()
			}
			if _, err := generate(); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 4096); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the model stays usable as far as the file goes
				_, err := generate()
				var fault *mmap.FaultError
				if !errors.As(err, &fault) || fault.Path != path || fault.Offset < 4096 {
					t.Fatalf("got %v, want a fault of %s from byte 4096 on", err, path)
				}
			}
		})
	}
}

// TestFileShrinksBeforeLoading opens what is left of a file.
func TestFileShrinksBeforeLoading(t *testing.T) {
	path := inPlace(t)
	if err := os.Truncate(path, 60000); err != nil {
		t.Fatal(err)
	}
	_, err := grove.Open(path, grove.Options{})
	var format *gguf.FormatError
	if !errors.As(err, &format) {
		t.Fatalf("got %v, want a FormatError", err)
	}
}
