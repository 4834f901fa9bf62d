package hf

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/weights/tensor"
)

// TestLFM2Inner computes inner values of published models by the rule of the class.
func TestLFM2Inner(t *testing.T) {
	for settings, want := range map[string]int{
		`{"block_ff_dim": 12288, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0}`:       8192, // LFM2-1.2B
		`{"block_ff_dim": 6656, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0}`:        4608, // LFM2-350M
		`{"block_ff_dim": 4096, "block_auto_adjust_ff_dim": false, "block_ffn_dim_multiplier": 2}`: 4096,
	} {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(path)
		if err != nil {
			t.Fatal(err)
		}
		b := &builder{&DecoderBuilder{FolderBuilder: NewFolder("")}}
		b.Config = c
		if got := b.lfm2Inner(c.Count("block_ff_dim", 1, MaxWidth)); got != want || !b.OK() {
			t.Errorf("%s: %d inner values, want %d (%v)", settings, got, want, b.FirstError())
		}
	}
}

// TestDeltaRefusals spoils a setting and expects the message that names it.
func TestDeltaRefusals(t *testing.T) {
	for _, c := range []struct {
		class, key string
		value      any
		want       string
	}{
		{"Lfm2ForCausalLM", "conv_bias", true, "conv_bias must be false"},
		{"Lfm2ForCausalLM", "layer_types", []string{"conv", "attention"}, `layer_types has "attention" for layer 1; it must be full_attention or conv`},
		{"Lfm2ForCausalLM", "layer_types", nil, "layer_types is missing"},
		{"Lfm2ForCausalLM", "layer_types", []string{"conv"}, "layer_types has 1 entries, there are 2 layers"},

		{"Qwen3NextForCausalLM", "linear_num_key_heads", 3, "linear_num_key_heads is 3; it must divide linear_num_value_heads (4)"},
		{"Qwen3NextForCausalLM", "linear_value_head_dim", 8, "linear_value_head_dim is 8; it must be linear_key_head_dim (16)"},
		{"Qwen3NextForCausalLM", "layer_types", []string{"full_attention", "linear_attention"}, `layer_types has "full_attention" for layer 0; by full_attention_interval (4) it is another`},
		{"Qwen3NextForCausalLM", "attn_output_gate", false, "attn_output_gate must be true"},
		{"Qwen3NextForCausalLM", "mlp_only_layers", []int{0}, "layers without experts (mlp_only_layers, decoder_sparse_step) are not supported"},
		{"Qwen3_5ForCausalLM", "rope_parameters", map[string]any{"mrope_section": []int{11, 11}}, "mrope_section has 2 numbers; it must have 3"},
		{"Qwen3_5ForCausalLM", "rope_parameters", map[string]any{"mrope_section": []int{1, 0, 0}}, "mrope_section holds 1 pairs; a head has 2"},
		{"Step3TextForCausalLM", "moe_layers_enum", "1,x", `moe_layers_enum is "1,x"; it must be numbers of layers with commas`},
		{"Step3TextForCausalLM", "share_q_dim", 0, "share_q_dim is 0; it must be an integer from 1 to 1048576"},
		{"KimiLinearForCausalLM", "mla_use_nope", false, "mla_use_nope must be true"},
		{"KimiLinearForCausalLM", "topk_group", 2, "topk_group is 2; only 1 is supported"},
		{"KimiLinearForCausalLM", "linear_attn_config", map[string]any{"head_dim": 16, "num_heads": 8, "full_attn_layers": []int{2}}, "num_heads is 8; it must be num_attention_heads (4)"},
		{"KimiLinearForCausalLM", "linear_attn_config", map[string]any{"head_dim": 16}, "full_attn_layers is missing"},
	} {
		t.Run(c.class+"/"+c.key, func(t *testing.T) {
			h := bare(t, c.class)
			for key, v := range map[string]any{
				"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 64,
				"layer_types": nil, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
				"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
				"linear_attn_config": map[string]any{"head_dim": 16, "full_attn_layers": []int{2}}, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
				"share_q_dim": 16, "share_expert_dim": 32, "moe_num_experts": 4, "moe_top_k": 2,
			} {
				h.Config[key] = v
			}
			h.Config[c.key] = c.value
			h.Tensors["model.embed_tokens.weight"] = tensor.View{Type: tensor.F32, Shape: []int{1, 1}, Data: make([]byte, 4)}
			if _, err := Open(write(t, h)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// TestQwen35Images leaves out what sees images, and takes experts that are two tensors.
func TestQwen35Images(t *testing.T) {
	const width, inner = 64, 64
	h := bare(t, "Qwen3_5MoeForConditionalGeneration")
	text := map[string]any{
		"num_hidden_layers": 1, "hidden_size": width, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "full_attention_interval": 1,
		"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "tie_word_embeddings": true,
		"moe_intermediate_size": inner, "shared_expert_intermediate_size": 32, "max_position_embeddings": 128, "hidden_act": "silu", "vocab_size": 320,
	}
	h.Config = map[string]any{"architectures": []string{"Qwen3_5MoeForConditionalGeneration"}, "text_config": text}
	rng := rand.New(rand.NewPCG(5, 6))
	put := func(name string, shape ...int) { h.Tensors["model."+name] = random(rng, shape...) }
	const root = "language_model.layers.0."
	put("language_model.embed_tokens.weight", 320, width)
	put("language_model.norm.weight", width)
	put("visual.blocks.0.attn.qkv.weight", 3, 3)
	for _, name := range []string{"input_layernorm", "post_attention_layernorm"} {
		put(root+name+".weight", width)
	}
	put(root+"self_attn.q_proj.weight", 128, width)
	put(root+"self_attn.k_proj.weight", 32, width)
	put(root+"self_attn.v_proj.weight", 32, width)
	put(root+"self_attn.o_proj.weight", width, 64)
	put(root+"self_attn.q_norm.weight", 16)
	put(root+"self_attn.k_norm.weight", 16)
	put(root+"mlp.gate.weight", 4, width)
	put(root+"mlp.experts.gate_up_proj", 4, 2*inner, width)
	put(root+"mlp.experts.down_proj", 4, width, inner)
	put(root+"mlp.shared_expert.gate_proj.weight", 32, width)
	put(root+"mlp.shared_expert.up_proj.weight", 32, width)
	put(root+"mlp.shared_expert.down_proj.weight", width, 32)
	put(root+"mlp.shared_expert_gate.weight", 1, width)
	f := open(t, write(t, h))
	if v, ok := f.Tensor("blk.0.ffn_gate_up_exps.weight"); !ok || v.Shape[1] != 2*inner {
		t.Errorf("experts are %v", v.Shape)
	}
	sections, _ := f.Lookup("qwen35moe.rope.dimension_sections")
	if got, ok := sections.Any().([]int32); !ok || len(got) != 4 || got[0] != 11 || got[3] != 0 {
		t.Errorf("sections are %v", sections.Any())
	}
}
