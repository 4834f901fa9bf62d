package hftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"grove/internal/weights/tensor"
)

// family is what differs between a folder of an architecture and one of Llama's names.
type family struct {
	class string
	names map[string]string // parts of a layer
	ends  map[string]string // tensors outside the layers
	root  string            // of layers
	turn  bool              // queries and keys have pairs side by side in GGUF
	// config changes config.json.
	config func(m source, c map[string]any)
	// split takes a tensor apart that the folder has in another form, and reports whether it did.
	split func(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool
}

var families = map[string]family{
	"smollm3": {class: "SmolLM3ForCausalLM", turn: true},
	"arcee":   {class: "ArceeForCausalLM", turn: true, config: set("hidden_act", "relu2")},
	"granite": {class: "GraniteForCausalLM", turn: true, config: graniteConfig},
	"granitemoe": {class: "GraniteMoeForCausalLM", turn: true, config: graniteConfig, split: splitGraniteMoE,
		names: map[string]string{"ffn_gate_inp": "block_sparse_moe.router.layer"}},
	"seed_oss": {class: "SeedOssForCausalLM", names: map[string]string{"post_attention_norm": "post_attention_layernorm"}},
	"apertus": {class: "ApertusForCausalLM", config: set("hidden_act", "xielu"),
		names: map[string]string{"attn_norm": "attention_layernorm", "ffn_norm": "feedforward_layernorm"}},
	"olmo":  {class: "OlmoForCausalLM", turn: true, config: func(m source, c map[string]any) { c["clip_qkv"] = m.float("attention.clamp_kqv") }},
	"olmoe": {class: "OlmoeForCausalLM", config: func(m source, c map[string]any) { c["num_experts"] = c["num_local_experts"] }},
	"exaone4": {class: "Exaone4ForCausalLM", config: without("sliding_window"),
		names: map[string]string{"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}},
	"ernie4_5":      {class: "Ernie4_5ForCausalLM"},
	"hunyuan-dense": {class: "HunYuanDenseV1ForCausalLM", names: map[string]string{"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"}},
	"glm4": {class: "Glm4ForCausalLM", config: partly("partial_rotary_factor"), names: map[string]string{
		"post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm", "ffn_up": "mlp.gate_up_proj"}},
	"minicpm": {class: "MiniCPMForCausalLM", turn: true, config: func(m source, c map[string]any) {
		c["scale_emb"], c["scale_depth"], c["dim_model_base"] = 12, 1.4, m.count("embedding_length")
	}},
	"internlm2": {class: "InternLM2ForCausalLM", split: splitInternLM2, config: func(m source, c map[string]any) {
		c["rope_scaling"] = map[string]any{"type": "dynamic", "factor": 2.0}
	}, ends: map[string]string{"token_embd.weight": "model.tok_embeddings.weight", "output_norm.weight": "model.norm.weight", "output.weight": "output.weight"},
		names: map[string]string{"attn_norm": "attention_norm", "ffn_norm": "ffn_norm", "attn_output": "attention.wo",
			"ffn_gate": "feed_forward.w1", "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2"}},
	"command-r": {class: "CohereForCausalLM", config: centered("layer_norm_eps", "logit_scale")},
	"cohere2":   {class: "Cohere2ForCausalLM", config: centered("layer_norm_eps", "logit_scale")},
	"nemotron": {class: "NemotronForCausalLM", split: lessOne, config: func(m source, c map[string]any) {
		partly("partial_rotary_factor")(m, c)
		c["hidden_act"], c["norm_eps"] = "relu2", m.float("attention.layer_norm_epsilon")
	}},
	"stablelm": {class: "StableLmForCausalLM", split: splitStableLM, config: func(m source, c map[string]any) {
		partly("partial_rotary_factor")(m, c)
		c["layer_norm_eps"], c["qk_layernorm"] = m.float("attention.layer_norm_epsilon"), true
	}},
	"phi2": {class: "PhiForCausalLM", config: func(m source, c map[string]any) {
		partly("partial_rotary_factor")(m, c)
		c["hidden_act"], c["layer_norm_eps"] = "gelu_new", m.float("attention.layer_norm_epsilon")
	}, names: map[string]string{"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"},
		ends: map[string]string{"token_embd.weight": "model.embed_tokens.weight", "output.weight": "lm_head.weight", "output.bias": "lm_head.bias",
			"output_norm.weight": "model.final_layernorm.weight", "output_norm.bias": "model.final_layernorm.bias"}},
	"gptneox": {class: "GPTNeoXForCausalLM", root: "gpt_neox.layers.", split: splitGPTNeoX, config: func(m source, c map[string]any) {
		partly("rotary_pct")(m, c)
		c["hidden_act"], c["layer_norm_eps"] = "gelu", m.float("attention.layer_norm_epsilon")
		c["use_parallel_residual"], _, _ = m.f.Bool("gptneox.use_parallel_residual")
		delete(c, "num_key_value_heads")
	}, names: map[string]string{"attn_output": "attention.dense", "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h"},
		ends: map[string]string{"token_embd.weight": "gpt_neox.embed_in.weight", "output.weight": "embed_out.weight",
			"output_norm.weight": "gpt_neox.final_layer_norm.weight", "output_norm.bias": "gpt_neox.final_layer_norm.bias"}},
	"qwen2moe": {class: "Qwen2MoeForCausalLM", split: splitSharedGate, config: func(m source, c map[string]any) {
		c["num_experts"], c["moe_intermediate_size"] = c["num_local_experts"], m.count("expert_feed_forward_length")
		shared, _ := m.f.Tensor("blk.0.ffn_up_shexp.weight")
		c["shared_expert_intermediate_size"] = shared.Shape[0]
		c["norm_topk_prob"], _, _ = m.f.Bool("qwen2moe.expert_weights_norm")
	}, names: map[string]string{"ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj", "ffn_down_shexp": "mlp.shared_expert.down_proj"}},
}

func set(key string, value any) func(source, map[string]any) {
	return func(_ source, c map[string]any) { c[key] = value }
}

func without(key string) func(source, map[string]any) {
	return func(_ source, c map[string]any) { delete(c, key) }
}

// size returns the values of a head.
func (m source) size() int {
	if n := m.count("attention.key_length"); n > 0 {
		return n
	}
	return m.count("embedding_length") / m.count("attention.head_count")
}

// partly sets the share of a head that rotates.
func partly(key string) func(source, map[string]any) {
	return func(m source, c map[string]any) {
		c[key] = float64(m.count("rope.dimension_count")) / float64(m.size())
	}
}

func centered(eps, scale string) func(source, map[string]any) {
	return func(m source, c map[string]any) {
		c[eps], c[scale] = m.float("attention.layer_norm_epsilon"), m.float("logit_scale")
	}
}

func graniteConfig(m source, c map[string]any) {
	for key, name := range map[string]string{"attention_multiplier": "attention.scale", "embedding_multiplier": "embedding_scale",
		"residual_multiplier": "residual_scale", "logits_scaling": "logit_scale"} {
		if x := m.float(name); x != 0 {
			c[key] = x
		}
	}
}

// numbers are the values of apertus' activations, a tensor each.
func (m source) numbers(out map[string]tensor.View) {
	for _, name := range []string{"alpha_n", "alpha_p", "beta", "eps"} {
		values, _, _ := m.f.Floats("xielu." + name)
		if one, _, err := m.f.Float("xielu." + name); err == nil && values == nil {
			values = slices.Repeat([]float32{float32(one)}, m.count("block_count"))
		}
		for l := range m.count("block_count") {
			data := binary.LittleEndian.AppendUint32(nil, math.Float32bits(values[l]))
			out[fmt.Sprintf("model.layers.%d.mlp.act_fn.%s", l, name)] = tensor.View{Type: tensor.F32, Shape: []int{1}, Data: data}
		}
	}
}

// rows returns the rows of t, or its values, that pick names.
func rows(t tensor.View, n int, pick func(i int) int) tensor.View {
	row := len(t.Data) / t.Shape[0]
	out := tensor.View{Type: t.Type, Shape: append([]int{n}, t.Shape[1:]...)}
	for i := range n {
		out.Data = append(out.Data, t.Data[pick(i)*row:][:row]...)
	}
	return out
}

// put writes the rows of t to a tensor of all rows, each where place says.
func put(out map[string]tensor.View, name string, all int, t tensor.View, place func(i int) int) {
	whole, ok := out[name]
	row := len(t.Data) / t.Shape[0]
	if !ok {
		whole = tensor.View{Type: t.Type, Shape: append([]int{all}, t.Shape[1:]...), Data: make([]byte, all*row)}
	}
	for i := range t.Shape[0] {
		copy(whole.Data[place(i)*row:], t.Data[i*row:][:row])
	}
	out[name] = whole
}

// splitInternLM2 joins queries, keys and values: the queries of a head of keys, its key, its value.
func splitInternLM2(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	heads, kv, size := m.count("attention.head_count"), m.count("attention.head_count_kv"), m.size()
	name, group := fmt.Sprintf("model.layers.%d.attention.wqkv.%s", layer, kind), heads/kv
	if part == "attn_q" || part == "attn_k" {
		turnBack(&t, size)
	}
	place := map[string]func(h int) int{
		"attn_q": func(h int) int { return h/group*(group+2) + h%group },
		"attn_k": func(h int) int { return h*(group+2) + group },
		"attn_v": func(h int) int { return h*(group+2) + group + 1 },
	}[part]
	if place == nil {
		return false
	}
	put(out, name, (heads+2*kv)*size, t, func(i int) int { return place(i/size)*size + i%size })
	return true
}

func splitGPTNeoX(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	if part != "attn_qkv" {
		return false
	}
	heads, size := m.count("attention.head_count"), m.size()
	out[fmt.Sprintf("gpt_neox.layers.%d.attention.query_key_value.%s", layer, kind)] = rows(t, t.Shape[0], func(i int) int {
		h, which, row := i/(3*size), i/size%3, i%size
		return which*heads*size + h*size + row
	})
	return true
}

func splitGraniteMoE(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	name := func(s string) string { return fmt.Sprintf("model.layers.%d.block_sparse_moe.%s.weight", layer, s) }
	which, up := 0, part == "ffn_up_exps"
	if up {
		which = 1
	}
	switch {
	case part == "ffn_down_exps":
		out[name("output_linear")] = t
	case up || part == "ffn_gate_exps":
		n, ffn, in := t.Shape[0], t.Shape[1], t.Shape[2]
		flat := tensor.View{Type: t.Type, Shape: []int{n * ffn, in}, Data: t.Data}
		put(out, name("input_linear"), n*2*ffn, flat, func(i int) int { return i/ffn*2*ffn + which*ffn + i%ffn })
		whole := out[name("input_linear")]
		whole.Shape = []int{n, 2 * ffn, in}
		out[name("input_linear")] = whole
	default:
		return false
	}
	return true
}

func splitStableLM(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	norm, ok := map[string]string{"attn_q_norm": "q_layernorm", "attn_k_norm": "k_layernorm"}[part]
	if ok {
		t.Shape = append([]int{t.Shape[0]}, t.Shape[1:]...)
		m.unstack(out, fmt.Sprintf("model.layers.%d.self_attn.%s.norms.%%d.weight", layer, norm), t)
	}
	return ok
}

func splitSharedGate(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	if part != "ffn_gate_inp_shexp" {
		return false
	}
	t.Shape = []int{1, t.Shape[0]}
	out[fmt.Sprintf("model.layers.%d.mlp.shared_expert_gate.weight", layer)] = t
	return true
}

// lessOne takes 1 from the weights of norms.
func lessOne(m source, out map[string]tensor.View, layer int, part, kind string, t tensor.View) bool {
	if strings.HasSuffix(part, "_norm") && kind == "weight" {
		SubtractOne(t.Data)
	}
	return false
}

// SubtractOne takes 1 from each of the values of float32.
func SubtractOne(data []byte) {
	for i := 0; i < len(data); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
		binary.LittleEndian.PutUint32(data[i:], math.Float32bits(x-1))
	}
}
