package hftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// deltas are the classes of models with gated delta nets and short convolutions.
var deltas = map[string]struct {
	class string
	parts map[string]string // names of the parts of a layer that differ by name alone
}{
	"lfm2": {"Lfm2ForCausalLM", lfm2Parts}, "lfm2moe": {"Lfm2MoeForCausalLM", lfm2Parts},
	"qwen3next": {"Qwen3NextForCausalLM", qwenParts}, "qwen35": {"Qwen3_5ForCausalLM", qwenParts}, "qwen35moe": {"Qwen3_5MoeForCausalLM", qwenParts},
	"kimi-linear": {"KimiLinearForCausalLM", kimiParts}, "step3": {"Step3TextForCausalLM", step3Parts},
}

var step3Parts = map[string]string{
	"attn_norm.weight": "input_layernorm.weight", "ffn_norm.weight": "post_attention_layernorm.weight", "attn_q_a.weight": "self_attn.q_proj.weight",
	"attn_q_a_norm.weight": "self_attn.inter_norm.weight", "attn_q_b.weight": "self_attn.wq.weight", "attn_k.weight": "self_attn.k_proj.weight",
	"attn_v.weight": "self_attn.v_proj.weight", "attn_output.weight": "self_attn.o_proj.weight", "ffn_gate.weight": "mlp.gate_proj.weight",
	"ffn_up.weight": "mlp.up_proj.weight", "ffn_down.weight": "mlp.down_proj.weight", "ffn_gate_inp.weight": "moe.gate.weight",
	"ffn_gate_exps.weight": "moe.gate_proj.weight", "ffn_up_exps.weight": "moe.up_proj.weight", "ffn_down_exps.weight": "moe.down_proj.weight",
	"ffn_gate_shexp.weight": "share_expert.gate_proj.weight", "ffn_up_shexp.weight": "share_expert.up_proj.weight", "ffn_down_shexp.weight": "share_expert.down_proj.weight",
}

var lfm2Parts = map[string]string{
	"attn_norm.weight": "operator_norm.weight", "ffn_norm.weight": "ffn_norm.weight", "attn_q.weight": "self_attn.q_proj.weight",
	"attn_k.weight": "self_attn.k_proj.weight", "attn_v.weight": "self_attn.v_proj.weight", "attn_output.weight": "self_attn.out_proj.weight",
	"attn_q_norm.weight": "self_attn.q_layernorm.weight", "attn_k_norm.weight": "self_attn.k_layernorm.weight",
	"shortconv.in_proj.weight": "conv.in_proj.weight", "shortconv.conv.weight": "conv.conv.weight", "shortconv.out_proj.weight": "conv.out_proj.weight",
	"ffn_gate.weight": "feed_forward.w1.weight", "ffn_up.weight": "feed_forward.w3.weight", "ffn_down.weight": "feed_forward.w2.weight",
	"ffn_gate_inp.weight": "feed_forward.gate.weight", "exp_probs_b.bias": "feed_forward.expert_bias",
	"ffn_gate_exps.weight": "feed_forward.experts.%d.w1.weight", "ffn_up_exps.weight": "feed_forward.experts.%d.w3.weight", "ffn_down_exps.weight": "feed_forward.experts.%d.w2.weight",
}

var qwenParts = map[string]string{
	"attn_norm.weight": "input_layernorm.weight", "post_attention_norm.weight": "post_attention_layernorm.weight", "attn_q.weight": "self_attn.q_proj.weight",
	"attn_k.weight": "self_attn.k_proj.weight", "attn_v.weight": "self_attn.v_proj.weight", "attn_output.weight": "self_attn.o_proj.weight",
	"attn_q_norm.weight": "self_attn.q_norm.weight", "attn_k_norm.weight": "self_attn.k_norm.weight", "ssm_norm.weight": "linear_attn.norm.weight",
	"attn_qkv.weight": "linear_attn.in_proj_qkv.weight", "attn_gate.weight": "linear_attn.in_proj_z.weight", "ssm_beta.weight": "linear_attn.in_proj_b.weight",
	"ssm_alpha.weight": "linear_attn.in_proj_a.weight", "ssm_ba.weight": "linear_attn.in_proj_ba.weight", "ssm_conv1d.weight": "linear_attn.conv1d.weight",
	"ssm_dt.bias": "linear_attn.dt_bias", "ssm_a": "linear_attn.A_log", "ssm_out.weight": "linear_attn.out_proj.weight",
	"ffn_gate.weight": "mlp.gate_proj.weight", "ffn_up.weight": "mlp.up_proj.weight", "ffn_down.weight": "mlp.down_proj.weight", "ffn_gate_inp.weight": "mlp.gate.weight",
	"ffn_gate_exps.weight": "mlp.experts.%d.gate_proj.weight", "ffn_up_exps.weight": "mlp.experts.%d.up_proj.weight", "ffn_down_exps.weight": "mlp.experts.%d.down_proj.weight",
	"ffn_gate_shexp.weight": "mlp.shared_expert.gate_proj.weight", "ffn_up_shexp.weight": "mlp.shared_expert.up_proj.weight",
	"ffn_down_shexp.weight": "mlp.shared_expert.down_proj.weight", "ffn_gate_inp_shexp.weight": "mlp.shared_expert_gate.weight",
}

var kimiParts = map[string]string{
	"attn_norm.weight": "input_layernorm.weight", "ffn_norm.weight": "post_attention_layernorm.weight", "attn_q.weight": "self_attn.q_proj.weight",
	"attn_k.weight": "self_attn.k_proj.weight", "attn_v.weight": "self_attn.v_proj.weight", "attn_output.weight": "self_attn.o_proj.weight",
	"ssm_conv1d_q.weight": "self_attn.q_conv1d.weight", "ssm_conv1d_k.weight": "self_attn.k_conv1d.weight", "ssm_conv1d_v.weight": "self_attn.v_conv1d.weight",
	"ssm_f_a.weight": "self_attn.f_a_proj.weight", "ssm_f_b.weight": "self_attn.f_b_proj.weight", "ssm_g_a.weight": "self_attn.g_a_proj.weight",
	"ssm_g_b.weight": "self_attn.g_b_proj.weight", "ssm_beta.weight": "self_attn.b_proj.weight", "ssm_a": "self_attn.A_log", "ssm_dt.bias": "self_attn.dt_bias",
	"ssm_norm.weight": "self_attn.o_norm.weight", "attn_kv_a_mqa.weight": "self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_norm.weight": "self_attn.kv_a_layernorm.weight",
	"attn_k_b.weight": "", "attn_v_b.weight": "", // together kv_b_proj
	"ffn_gate.weight": "mlp.gate_proj.weight", "ffn_up.weight": "mlp.up_proj.weight", "ffn_down.weight": "mlp.down_proj.weight",
	"ffn_gate_inp.weight": "block_sparse_moe.gate.weight", "exp_probs_b.bias": "block_sparse_moe.gate.e_score_correction_bias",
	"ffn_gate_exps.weight": "block_sparse_moe.experts.%d.w1.weight", "ffn_up_exps.weight": "block_sparse_moe.experts.%d.w3.weight",
	"ffn_down_exps.weight": "block_sparse_moe.experts.%d.w2.weight", "ffn_gate_shexp.weight": "block_sparse_moe.shared_experts.gate_proj.weight",
	"ffn_up_shexp.weight": "block_sparse_moe.shared_experts.up_proj.weight", "ffn_down_shexp.weight": "block_sparse_moe.shared_experts.down_proj.weight",
}

// FromDelta takes a model in float32 of one of these classes apart. Its vocabulary is that of the folder vocabulary, whose number of tokens it
// has.
func FromDelta(f *gguf.File, vocabulary *Folder) (*Folder, error) {
	m := source{f: f}
	m.arch = m.text("general.architecture")
	family, ok := deltas[m.arch]
	if !ok {
		return nil, fmt.Errorf("hftest: architecture %q is not known", m.arch)
	}
	d := &delta{source: m, parts: family.parts, out: map[string]tensor.View{}}
	for _, t := range f.Tensors {
		d.take(t)
	}
	out := &Folder{Config: d.settings(), Tensors: d.out, Tokenizer: vocabulary.Tokenizer, Names: vocabulary.Names}
	out.Config["architectures"] = []string{family.class}
	return out, d.err
}

type delta struct {
	source
	parts map[string]string
	out   map[string]tensor.View
	err   error
}

// values returns the values of a tensor.
func values(v tensor.View) []float32 {
	x := make([]float32, v.Elems())
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*i:]))
	}
	return x
}

func (d *delta) put(name string, x []float32, shape ...int) {
	v := tensor.View{Type: tensor.F32, Shape: shape}
	for _, f := range x {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(f))
	}
	d.out[name] = v
}

func (d *delta) qwen() bool { return strings.HasPrefix(d.arch, "qwen") }

// take adds what a tensor is in the folder.
func (d *delta) take(t tensor.View) {
	if name, ok := map[string]string{"token_embd.weight": "model.embed_tokens.weight", "output.weight": "lm_head.weight", "output_norm.weight": "model.norm.weight", "token_embd_norm.weight": "model.embedding_norm.weight"}[t.Name]; ok {
		d.put(name, d.less(t), t.Shape...)
		return
	}
	var l int
	var part string
	fmt.Sscanf(t.Name, "blk.%d.%s", &l, &part)
	root := fmt.Sprintf("model.layers.%d.", l)
	if n := d.count("block_count") - d.count("nextn_predict_layers"); l >= n {
		root = "mtp.layers.0."
	}
	if further, ok := map[string]string{"nextn.eh_proj.weight": "mtp.fc.weight", "nextn.enorm.weight": "mtp.pre_fc_norm_embedding.weight", "nextn.hnorm.weight": "mtp.pre_fc_norm_hidden.weight", "nextn.shared_head_norm.weight": "mtp.norm.weight"}[part]; ok {
		d.put(further, d.less(t), t.Shape...)
		return
	}
	name, ok := d.parts[part]
	switch {
	case !ok:
		d.err = fmt.Errorf("hftest: tensor %s is not known", t.Name)
	case strings.Contains(name, "%d"):
		each := len(t.Data) / t.Shape[0]
		for e := range t.Shape[0] {
			d.out[root+fmt.Sprintf(name, e)] = tensor.View{Type: t.Type, Shape: t.Shape[1:], Data: t.Data[e*each : (e+1)*each]}
		}
	case part == "attn_k_b.weight":
		d.keysValues(root, l)
	case name == "":
	case part == "ssm_a":
		d.rates(root+name, t)
	case strings.Contains(part, "conv"):
		d.put(root+name, d.heads(t, part), d.wide(t, part)...)
	case d.arch == "qwen3next" && part == "attn_qkv.weight":
		d.joined(root, l)
	case d.arch == "qwen3next" && part == "attn_gate.weight":
	case part == "ffn_gate_inp_shexp.weight":
		d.put(root+name, values(t), 1, t.Shape[0])
	default:
		d.put(root+name, d.heads(t, part), t.Shape...)
	}
}

// wide is the shape of a convolution, which folders have with one channel of inputs.
func (d *delta) wide(t tensor.View, part string) []int {
	if strings.HasPrefix(part, "shortconv.") && part != "shortconv.conv.weight" {
		return t.Shape
	}
	return []int{t.Shape[0], 1, t.Shape[len(t.Shape)-1]}
}

// less is the values of a tensor; norms of Qwen are distances from 1.
func (d *delta) less(t tensor.View) []float32 {
	x := values(t)
	if d.qwen() && len(t.Shape) == 1 && strings.Contains(t.Name, "norm") && !strings.Contains(t.Name, "ssm_norm") {
		for i := range x {
			x[i]--
		}
	}
	return x
}

// rates are the logarithms of what GGUF has negative.
func (d *delta) rates(name string, t tensor.View) {
	x := d.heads(t, "ssm_a")
	for i := range x {
		x[i] = float32(math.Log(float64(-x[i])))
	}
	if d.arch == "kimi-linear" {
		d.put(name, x, 1, 1, len(x), 1)
		return
	}
	d.put(name, x, len(x))
}

// heads puts the heads of values of Qwen 3.5 side by side by the head of keys that they read: GGUF has the first of each, then the second of
// each.
func (d *delta) heads(t tensor.View, part string) []float32 {
	x := d.less(t)
	if d.arch != "qwen35" && d.arch != "qwen35moe" {
		return x
	}
	keys, heads, size := d.count("ssm.group_count"), d.count("ssm.time_step_rank"), d.count("ssm.state_size")
	group := heads / keys
	from, each := 0, 0 // where the heads begin, and the values of each
	switch part {
	case "attn_qkv.weight", "ssm_conv1d.weight":
		from, each = 2*keys*size*t.Shape[1], size*t.Shape[1]
	case "attn_gate.weight":
		each = size * t.Shape[1]
	case "ssm_alpha.weight", "ssm_beta.weight":
		each = t.Shape[1]
	case "ssm_a", "ssm_dt.bias":
		each = 1
	case "ssm_out.weight": // by columns
		y := make([]float32, len(x))
		for i := range x {
			row, column := i/t.Shape[1], i%t.Shape[1]
			h := column / size
			y[row*t.Shape[1]+(h%keys*group+h/keys)*size+column%size] = x[i]
		}
		return y
	default:
		return x
	}
	y := append([]float32(nil), x...)
	for k := range keys {
		for j := range group {
			copy(y[from+(k*group+j)*each:][:each], x[from+(j*keys+k)*each:])
		}
	}
	return y
}

// joined joins queries, keys, values and gates by heads of keys.
func (d *delta) joined(root string, l int) {
	qkv, _ := d.f.Tensor(fmt.Sprintf("blk.%d.attn_qkv.weight", l))
	gate, _ := d.f.Tensor(fmt.Sprintf("blk.%d.attn_gate.weight", l))
	keys, heads, size := d.count("ssm.group_count"), d.count("ssm.time_step_rank"), d.count("ssm.state_size")
	group, row := heads/keys, qkv.Shape[1]
	x, z := values(qkv), values(gate)
	var out []float32
	for k := range keys {
		for _, part := range []struct {
			of       []float32
			first, n int
		}{{x, k, 1}, {x, keys + k, 1}, {x, 2*keys + k*group, group}, {z, k * group, group}} {
			out = append(out, part.of[part.first*size*row:(part.first+part.n)*size*row]...)
		}
	}
	d.put(root+"linear_attn.in_proj_qkvz.weight", out, len(out)/row, row)
}

// keysValues joins the matrices that expand the latent: for each head the rows of its key, then those of its value.
func (d *delta) keysValues(root string, l int) {
	k, _ := d.f.Tensor(fmt.Sprintf("blk.%d.attn_k_b.weight", l)) // [heads, rank, plain]
	v, _ := d.f.Tensor(fmt.Sprintf("blk.%d.attn_v_b.weight", l)) // [heads, value, rank]
	heads, rank, plain, value := k.Shape[0], k.Shape[1], k.Shape[2], v.Shape[1]
	kx, vx := values(k), values(v)
	var out []float32
	for h := range heads {
		for p := range plain {
			for r := range rank {
				out = append(out, kx[(h*rank+r)*plain+p])
			}
		}
		out = append(out, vx[h*value*rank:(h+1)*value*rank]...)
	}
	d.put(root+"self_attn.kv_b_proj.weight", out, heads*(plain+value), rank)
}

// settings makes config.json.
func (d *delta) settings() map[string]any {
	n := d.count("block_count") - d.count("nextn_predict_layers")
	c := map[string]any{
		"hidden_act": "silu", "tie_word_embeddings": false, "max_position_embeddings": d.count("context_length"), "hidden_size": d.count("embedding_length"),
		"num_hidden_layers": n, "intermediate_size": d.count("feed_forward_length"), "moe_intermediate_size": d.count("expert_feed_forward_length"),
		"num_attention_heads": d.count("attention.head_count"), "num_key_value_heads": d.count("attention.head_count_kv"), "head_dim": d.count("attention.key_length"),
		"rope_theta": 10000.0, "rms_norm_eps": 1e-5, "norm_eps": 1e-5, "num_experts": d.count("expert_count"), "num_experts_per_tok": d.count("expert_used_count"),
	}
	period := 3
	kinds := make([]string, n)
	var full []int
	for l := range kinds {
		if kinds[l] = "linear_attention"; d.arch == "lfm2" || d.arch == "lfm2moe" {
			kinds[l] = "conv"
		}
		if (l+1)%period == 0 {
			kinds[l] = "full_attention"
			full = append(full, l+1)
		}
	}
	c["layer_types"] = kinds
	switch {
	case d.arch == "kimi-linear":
		delete(c, "layer_types")
		heads := int(d.ints("attention.head_count")[0])
		c["num_attention_heads"], c["num_key_value_heads"] = heads, heads
		c["linear_attn_config"] = map[string]any{"head_dim": d.count("kda.head_dim"), "num_heads": heads, "short_conv_kernel_size": d.count("ssm.conv_kernel"), "full_attn_layers": full}
		rope := d.count("rope.dimension_count")
		c["kv_lora_rank"], c["qk_rope_head_dim"], c["qk_nope_head_dim"] = d.count("attention.kv_lora_rank"), rope, d.count("attention.key_length_mla")-rope
		c["v_head_dim"], c["first_k_dense_replace"], c["num_shared_experts"] = d.count("attention.value_length_mla"), d.count("leading_dense_block_count"), d.count("expert_shared_count")
		c["routed_scaling_factor"], c["moe_router_activation_func"], c["q_lora_rank"], c["mla_use_nope"] = d.float("expert_weights_scale"), "sigmoid", nil, true
	case d.arch == "step3":
		c["moe_num_experts"], c["share_q_dim"], c["share_expert_dim"] = c["num_experts"], d.count("attention.q_lora_rank"), d.count("expert_shared_feed_forward_length")
		c["num_attention_groups"], c["moe_layers_enum"] = c["num_key_value_heads"], "1, 2"
		delete(c, "num_key_value_heads")
	case d.qwen():
		c["full_attention_interval"], c["partial_rotary_factor"] = period, 0.5
		for key, name := range map[string]string{"conv_kernel": "conv_kernel_dim", "state_size": "key_head_dim", "group_count": "num_key_heads", "time_step_rank": "num_value_heads"} {
			c["linear_"+name] = d.count("ssm." + key)
		}
		c["linear_value_head_dim"], c["shared_expert_intermediate_size"] = d.count("ssm.state_size"), d.count("expert_shared_feed_forward_length")
		c["mtp_num_hidden_layers"] = d.count("nextn_predict_layers")
	default:
		c["num_key_value_heads"] = int(d.ints("attention.head_count_kv")[period-1])
		c["conv_L_cache"], c["block_auto_adjust_ff_dim"], c["num_dense_layers"] = d.count("shortconv.l_cache"), false, d.count("leading_dense_block_count")
	}
	return c
}

// ints returns an array of numbers.
func (d *delta) ints(key string) []int {
	n, _, _ := d.f.Ints(d.arch + "." + key)
	return n
}
