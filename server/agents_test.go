package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"grove/internal/gopher"
	"grove/internal/weights/gguf"
	"grove/server"
)

// TestAgents replays requests of coding agents and of official clients, whose texts are cut: each is answered, and nothing of it is left out but what
// the recording names. lab/agents makes recordings.
func TestAgents(t *testing.T) {
	long := edited(t, gopher.Named(gopher.NanoName), template, gguf.KV{Key: "llama.context_length", Value: gguf.Of(uint32(1 << 14))})
	o := options
	o.Context = 1 << 14
	s := serveModels(t, server.Config{}, source(modelName, long, o))
	files, err := filepath.Glob("testdata/agents/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var r struct {
				Client, Path string
				Body         map[string]any
				Ignored      []string
			}
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
				if r.Body[name] != nil {
					r.Body[name] = 2
				}
			}
			body, err := json.Marshal(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			status, answer, header := s.do(t, "POST", r.Path, string(body))
			if status != 200 {
				t.Errorf("%s: %d %s", r.Client, status, answer)
			}
			if got := header.Values("Grove-Ignored"); len(got) != len(r.Ignored) {
				t.Errorf("%s: %v is left out, want %v", r.Client, got, r.Ignored)
			}
		})
	}
}
