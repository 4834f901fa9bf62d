package hf

import (
	"encoding/json"
	"fmt"
	"slices"

	"grove/internal/weights/gguf"
)

// Dry makes a builder that reads no folder: its settings are those that say which matrices a folder of a model of GGUF would have, and
// in which order their rows would be. Matrices are noted in Sources and have no bytes.
func Dry(base *gguf.File, arch string) *FolderBuilder {
	b := NewFolder(arch)
	b.Dry, b.Sources = true, &[]Source{}
	b.Config = &FolderConfig{Path: arch + ": ", Values: map[string]json.RawMessage{}, Err: new(error), Dry: true}
	b.Whole = b.Config
	d := &dry{base: base, arch: arch, values: b.Config.Values}
	if d.layers = d.count("block_count"); d.layers > maxDryLayers {
		b.Config.Fail("block_count is %d; at most %d are supported", d.layers, maxDryLayers)
		return b
	}
	d.decoder()
	d.experts()
	d.recurrence()
	if special := specials[arch]; special != nil {
		special(d)
	}
	return b
}

const maxDryLayers = 1 << 10

// dry is a model of GGUF whose settings are found.
type dry struct {
	base   *gguf.File
	arch   string
	layers int
	values map[string]json.RawMessage
}

// count returns a number, 0 where it is missing, and of a list the largest.
func (d *dry) count(key string) int {
	if n, ok, err := d.base.Uint(d.arch + "." + key); ok && err == nil {
		return n
	}
	if all, _, err := d.base.Ints(d.arch + "." + key); err == nil && len(all) > 0 {
		return slices.Max(all)
	}
	return 0
}

// each returns a number for each layer.
func (d *dry) each(key string) []int {
	all, _, err := d.base.Ints(d.arch + "." + key)
	if err != nil || len(all) != d.layers {
		all = slices.Repeat([]int{d.count(key)}, d.layers)
	}
	return all
}

// set sets settings of several names to a value.
func (d *dry) set(value any, keys ...string) {
	text, _ := json.Marshal(value) // numbers, texts and lists have no error
	for _, k := range keys {
		d.values[k] = text
	}
}

// put is set for a number of GGUF, if it is there.
func (d *dry) put(key string, keys ...string) {
	if n := d.count(key); n > 0 {
		d.set(n, keys...)
	}
}

// has returns which layers have a tensor.
func (d *dry) has(name string) []bool {
	out := make([]bool, d.layers)
	for i := range out {
		_, out[i] = d.base.Tensor(fmt.Sprintf("blk.%d.%s.weight", i, name))
	}
	return out
}

// kinds returns a word for each layer.
func kinds(layers []bool, yes, no string) (out []string) {
	for _, is := range layers {
		if is {
			out = append(out, yes)
		} else {
			out = append(out, no)
		}
	}
	return out
}

// decoder sets what all decoders have.
func (d *dry) decoder() {
	d.set(d.layers, "num_hidden_layers", "n_layer")
	d.put("embedding_length", "hidden_size", "n_embd")
	d.put("feed_forward_length", "intermediate_size", "n_inner")
	d.put("attention.head_count", "num_attention_heads", "n_head")
	d.put("attention.head_count_kv", "num_key_value_heads")
	d.put("attention.key_length", "head_dim")
	d.set(max(1, d.count("context_length")), "max_position_embeddings", "n_positions")
	d.put("attention.sliding_window", "sliding_window")
	d.set(false, "use_sliding_window")
	_, untied := d.base.Tensor("output.weight")
	d.set(!untied, "tie_word_embeddings")
	for _, key := range []string{"kv_lora_rank", "q_lora_rank"} {
		d.put("attention."+key, key)
	}
	turned := d.count("rope.dimension_count")
	d.set(max(1, d.count("attention.key_length_mla")-turned), "qk_nope_head_dim")
	d.put("rope.dimension_count", "qk_rope_head_dim")
	d.put("attention.value_length_mla", "v_head_dim")
}

// experts sets what mixtures have.
func (d *dry) experts() {
	d.put("expert_count", "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
	d.set(max(1, d.count("expert_used_count")), "num_experts_per_tok", "moe_topk")
	d.put("expert_feed_forward_length", "moe_intermediate_size")
	d.put("expert_shared_feed_forward_length", "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")
	d.put("expert_shared_count", "n_shared_experts", "num_shared_experts")
	d.set(d.count("leading_dense_block_count"), "first_k_dense_replace", "num_dense_layers")
	d.set(true, "norm_topk_prob")
}

// recurrence sets what layers with states have.
func (d *dry) recurrence() {
	inner, heads := d.count("ssm.inner_size"), d.count("ssm.time_step_rank")
	if inner == 0 {
		return
	}
	d.set(inner/max(1, d.count("embedding_length")), "expand", "mamba_expand")
	d.put("ssm.conv_kernel", "conv_kernel", "mamba_d_conv", "linear_conv_kernel_dim")
	d.put("ssm.state_size", "state_size", "mamba_d_state", "ssm_state_size", "linear_key_head_dim")
	d.put("ssm.group_count", "n_groups", "mamba_n_groups", "linear_num_key_heads")
	d.set(heads, "num_heads", "mamba_n_heads", "mamba_num_heads", "linear_num_value_heads", "time_step_rank", "mamba_dt_rank")
	d.set(inner/max(1, heads), "mamba_head_dim", "mamba_d_head")
}

// attends returns which layers have heads of keys.
func (d *dry) attends() []bool {
	out := make([]bool, d.layers)
	for i, n := range d.each("attention.head_count_kv") {
		out[i] = n > 0
	}
	return out
}

// places returns the layers of which something holds, counted from first on.
func places(layers []bool, first int) []int {
	all := []int{}
	for i, is := range layers {
		if is {
			all = append(all, first+i)
		}
	}
	return all
}

// period sets a period and an offset that give the layers.
func (d *dry) period(key string, layers []bool) {
	all, period := places(layers, 0), max(1, d.layers)
	if len(all) > 1 {
		period = all[1] - all[0]
	}
	d.set(period, key+"_period")
	d.set(append(all, 0)[0], key+"_offset")
}

// specials set what some architectures have besides.
var specials = map[string]func(d *dry){
	"hunyuan-moe": func(d *dry) {
		d.set(max(1, d.count("expert_shared_feed_forward_length")/max(1, d.count("feed_forward_length"))), "num_shared_expert")
	},
	"llama4": func(d *dry) {
		d.put("feed_forward_length", "intermediate_size_mlp")
		d.put("expert_feed_forward_length", "intermediate_size")
		d.put("interleave_moe_layer_step", "interleave_moe_layer_step")
		d.set(d.count("expert_count") != llama4Wide, "use_qk_norm")
	},
	"gemma3n": func(d *dry) {
		d.gemma()
		d.set(d.each("feed_forward_length"), "intermediate_size")
		d.set(make([]int, d.layers), "activation_sparsity_pattern")
	},
	"diffusion-gemma": (*dry).gemma4,
	"gemma4":          (*dry).gemma4,
	"mistral4": func(d *dry) {
		d.set(map[string]int{"llama_4_scaling_beta": 1, "mscale": 1, "mscale_all_dim": 1}, "rope_parameters")
	},
	"mamba":  func(d *dry) { d.put("ssm.inner_size", "intermediate_size") },
	"mamba2": func(d *dry) { d.set(d.count("ssm.inner_size")/max(1, d.count("ssm.time_step_rank")), "head_dim") },
	"jamba": func(d *dry) {
		d.period("attn_layer", d.attends())
		d.set(max(1, d.count("expert_count")), "num_experts")
		d.period("expert_layer", d.has("ffn_gate_inp"))
	},
	"granitehybrid":  func(d *dry) { d.granite() },
	"granite":        func(d *dry) { d.granite() },
	"granitemoe":     func(d *dry) { d.granite() },
	"nemotron_h":     func(d *dry) { d.nemotron() },
	"nemotron_h_moe": func(d *dry) { d.nemotron() },
	"kimi-linear": func(d *dry) {
		d.set(map[string]any{"head_dim": max(1, d.count("kda.head_dim")), "full_attn_layers": places(d.attends(), 1)}, "linear_attn_config")
	},
	"lfm2":    func(d *dry) { d.lfm2() },
	"lfm2moe": func(d *dry) { d.lfm2() },
	"step3": func(d *dry) {
		d.put("attention.q_lora_rank", "share_q_dim")
		d.set(places(d.has("ffn_gate_inp"), 0), "moe_layers_enum")
	},
	"qwen3next": func(d *dry) { d.put("full_attention_interval", "full_attention_interval") },
	"qwen35":    func(d *dry) { d.put("full_attention_interval", "full_attention_interval") },
	"qwen35moe": func(d *dry) { d.put("full_attention_interval", "full_attention_interval") },
}

// slides returns which layers have a window.
func (d *dry) slides() []bool {
	out := make([]bool, d.layers)
	v, _ := d.base.Lookup(d.arch + ".attention.sliding_window_pattern")
	if all, ok := v.Any().([]bool); ok && len(all) == d.layers {
		return all
	}
	return out
}

// gemma sets what Gemma 3n and 4 have for each layer.
func (d *dry) gemma() {
	d.set(kinds(d.slides(), "sliding_attention", "full_attention"), "layer_types")
	d.set(d.count("attention.shared_kv_layers"), "num_kv_shared_layers")
	d.set(d.count("embedding_length_per_layer_input"), "hidden_size_per_layer_input")
}

// gemma4 sets what Gemma 4 and DiffusionGemma have.
func (d *dry) gemma4() {
	d.gemma()
	d.put("attention.key_length", "global_head_dim")
	d.put("attention.key_length_swa", "head_dim")
	d.set(d.count("expert_count") > 0, "enable_moe_block")
	d.put("expert_used_count", "top_k_experts")
	slides, heads := d.slides(), d.each("attention.head_count_kv")
	for i, n := range heads {
		if slides[i] {
			d.set(n, "num_key_value_heads")
		} else {
			d.set(n, "num_global_key_value_heads")
		}
	}
	d.set(true, "attention_k_eq_v")
	if inner := d.each("feed_forward_length"); len(inner) > 0 {
		d.set(slices.Min(inner), "intermediate_size")
		d.set(slices.Min(inner) < slices.Max(inner), "use_double_wide_mlp")
	}
}

// granite sets what Granite 4 has. Where all layers attend, its folders have a shared block alone.
func (d *dry) granite() {
	d.set(kinds(d.attends(), "attention", "mamba"), "layer_types")
	if d.count("expert_count") == 0 {
		d.put("feed_forward_length", "shared_intermediate_size")
	}
}

// nemotron sets the kind of each layer.
func (d *dry) nemotron() {
	ssm, heads, experts := d.has("ssm_in"), d.has("attn_q"), d.has("ffn_gate_inp")
	pattern := make([]byte, d.layers)
	for i := range pattern {
		switch {
		case ssm[i]:
			pattern[i] = 'M'
		case heads[i]:
			pattern[i] = '*'
		case experts[i]:
			pattern[i] = 'E'
		default:
			pattern[i] = '-'
		}
	}
	d.set(string(pattern), "hybrid_override_pattern")
	d.put("moe_latent_size", "moe_latent_size")
	d.set(1, "n_shared_experts")
}

// lfm2 sets the kind of each layer.
func (d *dry) lfm2() {
	d.set(kinds(d.attends(), "full_attention", "conv"), "layer_types")
	d.set(false, "block_auto_adjust_ff_dim")
}
