package hf

import (
	"bytes"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
)

// TestPhiMoE takes a random Phi 3.5 MoE apart, with factors of LongRoPE, whose strength is a setting of the folder, and finds it whole
// again under both names of its class.
func TestPhiMoE(t *testing.T) {
	metadata, tensors, err := synthetic.Spec{Arch: "phimoe", LongRope: 64, Vocab: 320, Vocabulary: true}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	whole, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	long, short := load(t, whole, "rope_factors_long.weight"), load(t, whole, "rope_factors_short.weight")
	rest := without(t, whole, "rope_factors_long.weight", "rope_factors_short.weight")
	rope := map[string]any{"type": "longrope", "long_factor": long, "short_factor": short, "original_max_position_embeddings": 64,
		"short_mscale": 1.25, "long_mscale": 1.25}
	folder := func(class string) string {
		return folderOf(t, rest, func(f *hftest.Folder) {
			f.Config["architectures"], f.Config["rope_scaling"], f.Config["router_jitter_noise"] = []string{class}, rope, 0.2
			f.Tokenizer["model"].(map[string]any)["merges"] = []string{}
		})
	}
	for _, class := range []string{"PhiMoEForCausalLM", "PhimoeForCausalLM"} {
		got := open(t, folder(class))
		compareTensors(t, whole, got)
		for key, want := range map[string]float32{"phimoe.rope.scaling.attn_factor": 1.25, "phimoe.router_jitter_noise": 0.2} {
			if v, _ := got.Lookup(key); v.Any() != want {
				t.Errorf("%s is %v, want %v", key, v.Any(), want)
			}
		}
		if n, _, _ := got.Uint("phimoe.rope.scaling.original_context_length"); n != 64 {
			t.Errorf("the short factors are for %d tokens, want 64", n)
		}
	}
	rope["short_mscale"] = 1
	if _, err := Open(folder("PhiMoEForCausalLM")); err == nil || !strings.Contains(err.Error(), "rope_scaling.short_mscale is 1; it must be long_mscale (1.25)") {
		t.Errorf("two strengths: %v", err)
	}
}
