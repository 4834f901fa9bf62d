package hf

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// lladaNames are the tensors of LLaDA, by pairs: in GGUF, in the folder.
var lladaNames = []string{
	"token_embd", "model.transformer.wte", "output_norm", "model.transformer.ln_f", "attn_output", "attn_out", "output.", "model.transformer.ff_out.",
	"blk.", "model.transformer.blocks.", "attn_norm", "attn_norm", "ffn_norm", "ff_norm", "attn_q.", "q_proj.", "attn_k.", "k_proj.", "attn_v.", "v_proj.",
	"ffn_gate.", "ff_proj.", "ffn_up.", "up_proj.", "ffn_down.", "ff_out.",
}

// turnedBack gives queries and keys of LLaDA the order that they have in a folder: the first values of a head's pairs, then the second ones.
func turnedBack(size int) func(out map[string]tensor.View, layer int, part string, v tensor.View) bool {
	return func(out map[string]tensor.View, layer int, part string, v tensor.View) bool {
		name, ok := map[string]string{"attn_q.weight": "q_proj.weight", "attn_k.weight": "k_proj.weight"}[part]
		if !ok {
			return false
		}
		row := len(v.Data) / v.Shape[0]
		var data []byte
		for head := 0; head < v.Shape[0]; head += size {
			for half := range 2 {
				for pair := range size / 2 {
					data = append(data, v.Data[(head+2*pair+half)*row:][:row]...)
				}
			}
		}
		v.Data = data
		out[fmt.Sprintf("model.transformer.blocks.%d.%s", layer, name)] = v
		return true
	}
}

// diffusionCases are small models of masked diffusion and what their folders say.
var diffusionCases = map[string]struct {
	layout layout
	keys   map[string]any // of GGUF
	bad    map[string]any // settings that are refused by name
}{
	"llada": {layout{class: "LLaDAModelLM", names: lladaNames, split: turnedBack(32), config: map[string]any{
		"activation_type": "silu", "block_type": "llama", "layer_norm_type": "rms", "mask_token_id": 319, "alibi": false, "rope": true, "include_bias": false, "multi_query_attention": nil,
	}}, map[string]any{"llada.attention.causal": false, "tokenizer.ggml.mask_token_id": uint32(319), "diffusion.shift_logits": false},
		map[string]any{"activation_type": "gelu", "alibi": true, "rope": false, "scale_logits": true, "block_type": "sequential", "layer_norm_type": "default", "include_bias": true, "mask_token_id": 320}},
	"llada-moe": {layout{class: "LLaDAMoEModelLM", config: map[string]any{"hidden_act": "silu", "num_experts": 6, "expert_intermediate_size": 64, "norm_topk_prob": false, "mask_token_id": 300}},
		map[string]any{"llada-moe.expert_weights_norm": false, "tokenizer.ggml.mask_token_id": uint32(300), "diffusion.shift_logits": false},
		map[string]any{"routed_scaling_factor": 2.5, "shared_expert_intermediate_size": 64, "hidden_act": "gelu"}},
	"dream": {layout{class: "DreamModel", config: map[string]any{"hidden_act": "silu", "mask_token_id": 301, "use_mrope": false}},
		map[string]any{"dream.attention.causal": false, "tokenizer.ggml.mask_token_id": uint32(301), "diffusion.shift_logits": true},
		map[string]any{"use_mrope": true, "use_sliding_window": true, "mask_token_id": -1}},
	"rnd1": {layout{class: "RND1LM", config: map[string]any{"hidden_act": "silu", "num_experts": 6, "mask_token_id": 302, "norm_topk_prob": true}},
		map[string]any{"rnd1.expert_used_count": uint32(2), "tokenizer.ggml.mask_token_id": uint32(302), "diffusion.shift_logits": true},
		map[string]any{"norm_topk_prob": false, "decoder_sparse_step": 2}},
	"sdar": {layout{class: "SDARForCausalLM", config: map[string]any{"hidden_act": "silu", "mask_token_id": 303, "model_type": "sdar"}},
		map[string]any{"sdar.attention.causal": false, "tokenizer.ggml.mask_token_id": uint32(303), "diffusion.shift_logits": false, "diffusion.block_length": uint32(4)},
		map[string]any{"block_size": 0, "hidden_act": "relu"}},
	"sdar_moe": {layout{class: "SDARMoeForCausalLM", config: map[string]any{"hidden_act": "silu", "num_experts": 6, "mask_token_id": 304, "block_size": 16}},
		map[string]any{"diffusion.block_length": uint32(16), "sdar_moe.expert_count": uint32(6)},
		map[string]any{"mlp_only_layers": []int{1}}},
}

// diffusionFolder makes the folder of a random model.
func diffusionFolder(t *testing.T, arch string) (*hftest.Folder, *gguf.File) {
	t.Helper()
	want := randomModel(t, synthetic.Spec{Arch: arch})
	return diffusionCases[arch].layout.folder(t, want), want
}

// TestDiffusion takes models of masked diffusion apart and expects them whole, with the keys that say that their rows see each other.
func TestDiffusion(t *testing.T) {
	for arch, c := range diffusionCases {
		t.Run(arch, func(t *testing.T) {
			f, want := diffusionFolder(t, arch)
			c.layout.check(t, want, f)
			got := open(t, write(t, f))
			for key, value := range c.keys {
				if v, ok := got.Lookup(key); !ok || v.Any() != value {
					t.Errorf("%s is %v, want %v", key, v.Any(), value)
				}
			}
			spoiled(t, f, c.bad)
		})
	}
}

// TestLLaDAKeys reads LLaDA's settings by its own names.
func TestLLaDAKeys(t *testing.T) {
	f, want := diffusionFolder(t, "llada")
	for own, usual := range map[string]string{
		"d_model": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads", "n_kv_heads": "num_key_value_heads",
		"mlp_hidden_size": "intermediate_size", "max_sequence_length": "max_position_embeddings", "weight_tying": "tie_word_embeddings",
	} {
		f.Config[own] = f.Config[usual]
		delete(f.Config, usual)
	}
	compareTensors(t, want, open(t, write(t, f)))
}

// TestMaskOfTokenizer finds the mask among the tokens that the tokenizer adds, and refuses a folder without one by name.
func TestMaskOfTokenizer(t *testing.T) {
	f, _ := diffusionFolder(t, "sdar")
	delete(f.Config, "mask_token_id")
	added := f.Tokenizer["added_tokens"].([]map[string]any)
	for i := range added {
		if text := added[i]["content"].(string); strings.EqualFold(text, "<|mask|>") {
			added[i]["content"] = "<|none|>"
		}
	}
	if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), "mask_token_id is missing, and tokenizer.json adds none of") {
		t.Errorf("no mask: error %v", err)
	}
	last := maps.Clone(added[len(added)-1])
	last["content"] = "<|MASK|>"
	f.Tokenizer["added_tokens"] = append(added[:len(added)-1:len(added)-1], last)
	got := open(t, write(t, f))
	if id, _, _ := got.Uint("tokenizer.ggml.mask_token_id"); id != last["id"] {
		t.Errorf("the mask is %d, want %v", id, last["id"])
	}
}
