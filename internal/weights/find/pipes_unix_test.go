//go:build unix

package find

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes puts named pipes without writers where models are looked for: nothing waits, and what hides a model is told.
func TestPipes(t *testing.T) {
	f := newFake(t)
	hub := ".cache/huggingface/hub/models--a--b"
	f.write(hub+"/snapshots/c/m.gguf", "x")
	manifest := ".ollama/models/manifests/registry.ollama.ai/library/m/latest"
	for _, pipe := range []string{"models", hub + "/refs/main", manifest, hub + "/snapshots/c/config.json", hub + "/snapshots/c/p.gguf"} {
		path := filepath.Join(f.home, filepath.FromSlash(pipe))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Skip(err)
		}
	}
	f.write(hub+"/snapshots/c/x.safetensors", "x")
	f.vars["GROVE_MODELS"] = filepath.Join(f.home, "models")
	models, faults := f.store().List()
	if len(models) != 1 || models[0].Name != "a/b/m" {
		t.Errorf("got %v, want the model beside the pipes", models)
	}
	if text := errors.Join(faults...).Error(); !strings.Contains(text, "models is not a directory") {
		t.Errorf("got %s", text)
	}
}
