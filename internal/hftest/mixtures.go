package hftest

import (
	"fmt"

	"grove/internal/weights/tensor"
)

func init() {
	shared := map[string]string{"ffn_gate_shexp": "mlp.shared_experts.gate_proj", "ffn_up_shexp": "mlp.shared_experts.up_proj", "ffn_down_shexp": "mlp.shared_experts.down_proj"}
	for arch, f := range map[string]family{
		"glm4moe":  {class: "Glm4MoeForCausalLM", config: routed("n_routed_experts", "n_shared_experts"), names: with(shared, "post_attention_norm", "post_attention_layernorm")},
		"deepseek": {class: "DeepseekForCausalLM", turn: true, config: routed("n_routed_experts", "n_shared_experts"), names: shared},
		"dots1":    {class: "Dots1ForCausalLM", config: routed("n_routed_experts", "n_shared_experts"), names: shared},
		"deepseek2": {class: "DeepseekV3ForCausalLM", config: latentConfig, split: splitLatent, names: with(shared,
			"attn_q_a", "self_attn.q_a_proj", "attn_q_b", "self_attn.q_b_proj", "attn_q_a_norm", "self_attn.q_a_layernorm",
			"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa", "attn_kv_a_norm", "self_attn.kv_a_layernorm")},
		"bailingmoe": {class: "BailingMoeForCausalLM", config: func(m source, c map[string]any) {
			routed("num_experts", "num_shared_experts")(m, c)
			c["first_k_dense_replace"] = 0
		}, split: splitBailing, ends: bailingEnds, names: with(shared, "attn_output", "attention.dense")},
		"bailingmoe2": {class: "BailingMoeV2ForCausalLM", config: routed("num_experts", "num_shared_experts"), ends: bailingEnds,
			names: with(shared, "attn_output", "attention.dense", "attn_qkv", "attention.query_key_value",
				"attn_q_norm", "attention.query_layernorm", "attn_k_norm", "attention.key_layernorm")},
		"hunyuan-moe": {class: "HunYuanMoEV1ForCausalLM", config: func(m source, c map[string]any) {
			n, ffn := m.count("block_count"), m.count("feed_forward_length")
			c["num_experts"] = m.count("expert_count")
			for key, value := range map[string]int{"moe_topk": m.count("expert_used_count"), "moe_intermediate_size": ffn, "num_shared_expert": 1} {
				var all []int
				for range n {
					all = append(all, value)
				}
				c[key] = all
			}
		}, names: map[string]string{"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm", "ffn_gate_inp": "mlp.gate.wg",
			"ffn_gate_shexp": "mlp.shared_mlp.gate_proj", "ffn_up_shexp": "mlp.shared_mlp.up_proj", "ffn_down_shexp": "mlp.shared_mlp.down_proj"}},
		"minimax-m2": {class: "MiniMaxM2ForCausalLM", config: func(m source, c map[string]any) {
			c["rotary_dim"], c["scoring_func"] = m.count("rope.dimension_count"), "sigmoid"
		}, names: map[string]string{"ffn_gate_inp": "block_sparse_moe.gate", "ffn_gate_exps": "block_sparse_moe.experts.%d.w1",
			"ffn_up_exps": "block_sparse_moe.experts.%d.w3", "ffn_down_exps": "block_sparse_moe.experts.%d.w2"}},
		"phimoe": {class: "PhiMoEForCausalLM", names: with(special["llama"]), ends: with(ends, "output.bias", "lm_head.bias")},
		"exaone": {class: "ExaoneForCausalLM", root: "transformer.h.", config: func(m source, c map[string]any) {
			c["activation_function"], c["num_layers"], c["layer_norm_epsilon"] = "silu", c["num_hidden_layers"], c["rms_norm_eps"]
			delete(c, "num_hidden_layers")
		}, names: map[string]string{"attn_norm": "ln_1", "ffn_norm": "ln_2", "attn_q": "attn.attention.q_proj", "attn_k": "attn.attention.k_proj",
			"attn_v": "attn.attention.v_proj", "attn_output": "attn.attention.out_proj", "ffn_gate": "mlp.c_fc_0", "ffn_up": "mlp.c_fc_1", "ffn_down": "mlp.c_proj"},
			ends: map[string]string{"token_embd.weight": "transformer.wte.weight", "output_norm.weight": "transformer.ln_f.weight", "output.weight": "lm_head.weight"}},
		"mistral3": {class: "Mistral3ForConditionalGeneration", turn: true, root: "language_model.model.layers.", config: inText, ends: textEnds("language_model.model.")},
		"qwen3vl":  {class: "Qwen3VLForConditionalGeneration", root: "model.language_model.layers.", config: inText, ends: textEnds("model.language_model.")},
		"qwen3vlmoe": {class: "Qwen3VLMoeForConditionalGeneration", root: "model.language_model.layers.", ends: textEnds("model.language_model."), split: splitTurned,
			config: func(m source, c map[string]any) {
				c["num_experts"], c["moe_intermediate_size"] = c["num_local_experts"], m.count("expert_feed_forward_length")
				inText(m, c)
			}},
	} {
		families[arch] = f
	}
}

var bailingEnds = map[string]string{"token_embd.weight": "model.word_embeddings.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}

func textEnds(prefix string) map[string]string {
	return map[string]string{"token_embd.weight": prefix + "embed_tokens.weight", "output_norm.weight": prefix + "norm.weight", "output.weight": "lm_head.weight"}
}

// inText moves the settings into the part of a model that reads images too.
func inText(_ source, c map[string]any) {
	text := map[string]any{}
	for key, value := range c {
		if key != "architectures" {
			text[key] = value
			delete(c, key)
		}
	}
	c["text_config"] = text
}

// with returns names and further pairs.
func with(names map[string]string, pairs ...string) map[string]string {
	all := map[string]string{}
	for k, v := range names {
		all[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// routed sets what DeepSeek's mixtures have.
func routed(experts, sharedKey string) func(source, map[string]any) {
	return func(m source, c map[string]any) {
		delete(c, "num_local_experts")
		c[experts], c[sharedKey] = m.count("expert_count"), m.count("expert_shared_count")
		c["moe_intermediate_size"], c["first_k_dense_replace"] = m.count("expert_feed_forward_length"), m.count("leading_dense_block_count")
		c["routed_scaling_factor"] = m.float("expert_weights_scale")
		c["norm_topk_prob"], _, _ = m.f.Bool(m.arch + ".expert_weights_norm")
		c["scoring_func"] = "softmax"
		if m.count("expert_gating_func") == 2 {
			c["scoring_func"] = "sigmoid"
		}
		if _, ok := m.f.Tensor("blk.0.attn_q_norm.weight"); ok {
			c["use_qk_norm"] = true
		}
		partly("partial_rotary_factor")(m, c)
	}
}

func latentConfig(m source, c map[string]any) {
	routed("n_routed_experts", "n_shared_experts")(m, c)
	turned := m.count("rope.dimension_count")
	c["kv_lora_rank"], c["q_lora_rank"], c["qk_rope_head_dim"] = m.count("attention.kv_lora_rank"), m.count("attention.q_lora_rank"), turned
	c["qk_nope_head_dim"], c["v_head_dim"] = m.count("attention.key_length_mla")-turned, m.count("attention.value_length_mla")
}

// splitLatent joins the matrices that expand the latent of one head, and takes gates and what they gate apart.
func splitLatent(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	plain := m.count("attention.key_length_mla") - m.count("rope.dimension_count")
	name, rows := fmt.Sprintf("model.layers.%d.self_attn.kv_b_proj.weight", layer), plain+m.count("attention.value_length_mla")
	if part == "attn_k_b" || part == "attn_v_b" { // of the one head
		t.Shape = t.Shape[len(t.Shape)-2:]
	}
	switch part {
	case "attn_k_b":
		put(out, name, rows, transpose(t), func(i int) int { return i })
	case "attn_v_b":
		put(out, name, rows, t, func(i int) int { return plain + i })
	case "ffn_gate_up_exps":
		n, ffn := t.Shape[0], t.Shape[1]/2
		flat := tensor.View{Type: t.Type, Shape: []int{n * 2 * ffn, t.Shape[2]}, Data: t.Data}
		for e := range n {
			for which, of := range []string{"gate_proj", "up_proj"} {
				out[fmt.Sprintf("model.layers.%d.mlp.experts.%d.%s.weight", layer, e, of)] = rowsOf(flat, ffn, (2*e+which)*ffn)
			}
		}
	default:
		return false
	}
	return true
}

// splitTurned joins the experts' gates and what they gate, and has all experts as [in, out].
func splitTurned(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	name, columns, first := "gate_up_proj", 2*m.count("expert_feed_forward_length"), 0
	switch part {
	case "ffn_gate_exps":
	case "ffn_up_exps":
		first = columns / 2
	case "ffn_down_exps":
		name, columns = "down_proj", t.Shape[1]
	default:
		return false
	}
	name = fmt.Sprintf("model.language_model.layers.%d.mlp.experts.%s", layer, name)
	n, rows, in := t.Shape[0], t.Shape[1], t.Shape[2]
	size := len(t.Data) / (n * rows * in)
	whole, ok := out[name]
	if !ok {
		whole = tensor.View{Type: t.Type, Shape: []int{n, in, columns}, Data: make([]byte, n*in*columns*size)}
	}
	for e := range n {
		for r := range rows {
			for i := range in {
				copy(whole.Data[((e*in+i)*columns+first+r)*size:][:size], t.Data[((e*rows+r)*in+i)*size:])
			}
		}
	}
	out[name] = whole
	return true
}

func rowsOf(t tensor.View, n, first int) tensor.View {
	return rows(t, n, func(i int) int { return first + i })
}

// splitBailing joins queries, keys and values, one after the other.
func splitBailing(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	heads, kv, size := m.count("attention.head_count"), m.count("attention.head_count_kv"), m.size()
	first, ok := map[string]int{"attn_q": 0, "attn_k": heads, "attn_v": heads + kv}[part]
	if !ok {
		return false
	}
	if part != "attn_v" {
		turnBack(&t, size)
	}
	put(out, fmt.Sprintf("model.layers.%d.attention.query_key_value.%s", layer, kind), (heads+2*kv)*size, t, func(i int) int { return first*size + i })
	return true
}
