//go:build unix

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"grove/internal/engine"
	"grove/internal/mmap"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// TestFileShrinks cuts a file, whose weights are read where they are, at several places while it is in
// use. Its matrices are large enough for every thread to take a share, so that any of them may meet
// the fault; the caller gets it as an error, and the engine can be used as before.
func TestFileShrinks(t *testing.T) {
	spec := modeltest.Spec{Type: tensor.Q8_0, Width: 256, FFN: 512, Layers: 1}
	metadata, tensors := spec.Parts(t)
	for _, threads := range []int{1, 2} {
		for _, share := range []int{0, 40, 80} { // per cent that is left
			t.Run(fmt.Sprintf("threads=%d/left=%d", threads, share), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "m.gguf")
				if err := gguf.WriteFile(path, metadata, tensors); err != nil {
					t.Fatal(err)
				}
				f, err := gguf.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				pool := par.New(threads)
				defer pool.Close()
				m, err := model.Open(f, pool, model.Options{NoRepack: true})
				if err != nil {
					t.Fatal(err)
				}
				e, err := engine.New(m, pool, engine.Config{})
				if err != nil {
					t.Fatal(err)
				}
				s := sequence(t, e)
				draw(t, s, 2, text(5))
				size := f.Size() * int64(share) / 100
				if err := os.Truncate(path, size); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					var fault *mmap.FaultError
					if err := s.Append(t.Context(), text(8)); !errors.As(err, &fault) || fault.Path != path || fault.Offset < size {
						t.Fatalf("got %v, want a fault of %s from byte %d on", err, path, size)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if err := gguf.WriteFile(path, metadata, tensors); err != nil { // another file under the name
					t.Fatal(err)
				}
				if err := sequence(t, e).Append(t.Context(), text(5)); err == nil {
					t.Error("a cut file gives logits")
				}
			})
		}
	}
}
