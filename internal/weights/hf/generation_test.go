package hf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/hftest"
	"grove/internal/weights/gguf"
)

// TestSampling: what generation_config.json recommends has the keys of llama.cpp.
func TestSampling(t *testing.T) {
	type keys map[string]any
	for _, c := range []struct {
		name, text string
		want       keys
	}{
		{"none", "", keys{}},
		{"ends alone", `{"eos_token_id":1,"max_length":20,"temperature":null}`, keys{}},
		{"Llama 3", `{"do_sample":true,"temperature":0.6,"top_p":0.9}`, keys{"temp": float32(0.6), "top_p": float32(0.9)}},
		{"Qwen 3", `{"do_sample":true,"temperature":0.6,"top_k":20,"top_p":0.95,"repetition_penalty":1.05}`,
			keys{"temp": float32(0.6), "top_k": int32(20), "top_p": float32(0.95), "penalty_repeat": float32(1.05), "penalty_last_n": int32(-1)}},
		{"window", `{"repetition_penalty":1.1,"penalty_last_n":64}`, keys{"penalty_repeat": float32(1.1), "penalty_last_n": int32(64)}},
		{"no penalty", `{"repetition_penalty":1.0,"min_p":0.1}`, keys{"min_p": float32(0.1)}},
		{"greedy", `{"do_sample":false,"temperature":0.7}`, keys{"temp": float32(0)}},
		{"out of range", `{"temperature":-1,"top_k":-5,"top_p":7}`, keys{"temp": float32(-1), "top_k": int32(-5), "top_p": float32(7)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folderOf(t, golden(t, "llama-tied"), func(*hftest.Folder) {})
			if c.text != "" {
				if err := os.WriteFile(filepath.Join(dir, GenerationName), []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got := keys{}
			for _, kv := range f.Metadata {
				if name, ok := strings.CutPrefix(kv.Key, "general.sampling."); ok {
					got[name] = kv.Value.Any()
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("keys (-want +got):\n%s", d)
			}
		})
	}
}

// FuzzGeneration reads hostile recommendations of settings beside a model.
func FuzzGeneration(f *testing.F) {
	f.Add(`{"do_sample":true,"temperature":0.6,"top_k":20,"top_p":0.95,"repetition_penalty":1.05,"penalty_last_n":-1,"eos_token_id":[1,2]}`)
	f.Add(`{"temperature":1e999,"top_k":1e30,"do_sample":3}`)
	f.Add(`{"temperature":"0.6","eos_token_id":-7}`)
	f.Add(`[`)
	dir := f.TempDir()
	golden, err := gguf.Open("../../suite/modeltest/testdata/llama-tied.gguf")
	if err != nil {
		f.Fatal(err)
	}
	defer golden.Close()
	model, err := hftest.From(golden)
	if err == nil {
		err = model.Write(dir)
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(dir, GenerationName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(dir)
		if err != nil {
			if !strings.Contains(err.Error(), GenerationName) {
				t.Errorf("%q: the error names no file: %v", text, err)
			}
			return
		}
		m.Close()
	})
}
