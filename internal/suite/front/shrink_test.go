//go:build unix

package front_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"grove"
	"grove/internal/mmap"
	"grove/internal/weights/gguf"
)

// copyOf copies the golden model to a file of its own.
func copyOf(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(goldenModel)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFileShrinks cuts a file short while its model is open and reads weights where they are mapped: generation ends with an error that names
// the file, whichever thread met the fault, and the process goes on.
func TestFileShrinks(t *testing.T) {
	for _, threads := range []int{1, 2} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			path := copyOf(t)
			m := open(t, path, grove.Options{Threads: threads, NoRepack: true})
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
	path := copyOf(t)
	if err := os.Truncate(path, 60000); err != nil {
		t.Fatal(err)
	}
	_, err := grove.Open(path, threaded(grove.Options{}))
	var format *gguf.FormatError
	if !errors.As(err, &format) {
		t.Fatalf("got %v, want a FormatError", err)
	}
}
