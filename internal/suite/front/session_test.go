package front_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/internal/weights/gguf"
)

// TestSessionOfAnotherModel saves a session and continues it with models that differ from the first in the last byte of
// one tensor: they refuse it, and the answers of the first stay what they are.
func TestSessionOfAnotherModel(t *testing.T) {
	session := filepath.Join(t.TempDir(), "session")
	ask := func(data []byte) (string, error) {
		m, err := grove.OpenBytes(data, threaded(grove.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		prompt := strings.Repeat("func main() {\n\treturn 1\n}\n", 20) // longer than a page
		g, err := m.Generate(t.Context(), grove.Request{Prompt: prompt, MaxTokens: 4, Session: session})
		if err != nil {
			return "", err
		}
		return g.Text()
	}
	first, err := ask(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	data := slices.Clone(gopher.Model())
	f, err := gguf.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, len(f.Tensors) / 2, len(f.Tensors) - 1} {
		of := f.Tensors[i].Data
		of[len(of)-1] ^= 1
		if _, err := ask(data); !errors.Is(err, grove.ErrSessionFile) {
			t.Errorf("with another last byte of %s: %v", f.Tensors[i].Name, err)
		}
		of[len(of)-1] ^= 1
	}
	again, err := ask(data)
	if err != nil || again != first {
		t.Errorf("the same model continues with %q, %v, want %q", again, err, first)
	}
}
