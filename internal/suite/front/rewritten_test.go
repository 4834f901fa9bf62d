package front_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/engine"
)

// TestRewrittenModel: pages that a model computes once its file was written in place are neither filed under its name, in the folder of prefixes or in a session, nor are
// those that others have written read; a file that another one has replaced stays as it was.
func TestRewrittenModel(t *testing.T) {
	good, err := os.ReadFile(goldenModel)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(good)
	for i := len(bad) / 2; i < len(bad)/2+4096; i += 2 {
		bad[i] ^= 1
	}
	dir := t.TempDir()
	right := filepath.Join(dir, "right.gguf")
	if err := os.WriteFile(right, good, 0o600); err != nil {
		t.Fatal(err)
	}
	r := grove.Request{Prompt: strings.Repeat("func main() { return }\n", 20), MaxTokens: 8}
	want, _ := generate(t, open(t, right, grove.Options{NoRepack: true, Forget: true}), r)
	for _, tt := range []struct {
		name    string
		write   func(path string) error
		written bool
	}{
		{"written in place", func(path string) error { return os.WriteFile(path, bad, 0o600) }, false},
		{"replaced", func(path string) error {
			if err := os.WriteFile(path+".new", bad, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, true},
	} {
		var log bytes.Buffer
		folder, session := t.TempDir(), filepath.Join(t.TempDir(), "session")
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := grove.Open(path, grove.Options{NoRepack: true, Forget: true, Prefixes: engine.Prefixes{Dir: folder, Log: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil {
			t.Fatal(err)
		}
		first := r
		first.Prompt = "// a beginning\n" + r.Prompt
		generate(t, m, first) // the identity is known, and pages are written
		if err := tt.write(path); err != nil {
			t.Fatal(err)
		}
		_, _ = answerOf(mustGenerate(t, m, r))
		kept := r
		kept.Session = session
		_, saved := answerOf(mustGenerate(t, m, kept))
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if (saved == nil) != tt.written || strings.Contains(log.String(), "was written since") == tt.written {
			t.Errorf("%s: the session: %v; the log: %s", tt.name, saved, log.String())
		}
		for _, r := range []grove.Request{r, kept} {
			m := open(t, right, grove.Options{NoRepack: true, Forget: true, Prefixes: engine.Prefixes{Dir: folder}})
			if got, stats := generate(t, m, r); cmp.Diff(want, got, sameBits) != "" {
				t.Errorf("%s: with %d reused tokens (-want +got):\n%s", tt.name, stats.ReusedTokens, cmp.Diff(want, got, sameBits))
			}
		}
	}
}

// mustGenerate prepares an answer.
func mustGenerate(t *testing.T, m *grove.Model, r grove.Request) *grove.Generation {
	t.Helper()
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
