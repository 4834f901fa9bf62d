package distill_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"grove"
	"grove/constrain/hmm"
	"grove/internal/gopher"
	"grove/lab/distill"
)

// TestWrite makes the same file twice, reads it, and refuses what makes no sense.
func TestWrite(t *testing.T) {
	m, err := grove.OpenBytes(gopher.Named(gopher.NanoName), grove.Options{Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var last float64
	var texts int
	d := distill.Options{Samples: 30, MaxTokens: 12, States: 4, Iterations: 5, Seed: 3, Prompts: []string{"func main() {", "package"}}
	d.Progress = func(n, passes int, logprob float64) { texts, last = n, logprob }
	var files [2]bytes.Buffer
	for i := range files {
		if err := distill.Write(t.Context(), m, d, &files[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
		t.Error("the same arguments give another file")
	}
	if texts != d.Samples || last >= 0 || last < -9 {
		t.Errorf("progress: %d texts, %v nats", texts, last)
	}
	path := filepath.Join(t.TempDir(), "h.gguf")
	if err := os.WriteFile(path, files[0].Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := hmm.Open(path)
	if err != nil || h.States() != 4 || h.Vocabulary() != m.Vocabulary() {
		t.Fatalf("%v, %v", h, err)
	}
	var option *grove.OptionError
	for _, bad := range []distill.Options{{}, {Samples: 1, States: 1}, {Samples: 1, Iterations: 1, States: 1 << 20}, {Samples: 1, Iterations: 1, States: 1, MaxTokens: -1}} {
		if err := distill.Write(t.Context(), m, bad, &files[0]); !errors.As(err, &option) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := distill.Write(ctx, m, d, &files[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := hmm.Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is opened")
	}
}
