package hf

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// stepFolder takes a random Step 3.5 apart.
func stepFolder(t *testing.T) (layout, *hftest.Folder, *gguf.File) {
	t.Helper()
	want := randomModel(t, synthetic.Spec{Arch: "step35", Layers: 4})
	kinds := []string{"full_attention", "sliding_attention", "sliding_attention", "full_attention"}
	l := layout{class: "Step3p5ForCausalLM", config: map[string]any{
		"num_attention_heads": 4, "num_attention_groups": 2, "attention_other_setting": map[string]any{"attention_type": "sliding_attention", "num_attention_heads": 6, "num_attention_groups": 2, "head_dim": 32},
		"head_dim": 32, "moe_num_experts": 6, "moe_top_k": 2, "moe_intermediate_size": 64, "share_expert_dim": 64, "moe_layers_enum": "1,2,3", "sliding_window": 40, "layer_types": kinds,
		"rope_theta": []float64{500000, 100, 100, 500000}, "partial_rotary_factors": []float64{0.5, 1, 1, 0.5}, "use_head_wise_attn_gate": true, "use_moe_router_bias": true,
		"moe_router_activation": "sigmoid", "moe_router_scaling_factor": 1.5, "norm_expert_weight": true, "use_qk_norm": true, "zero_centered": true, "att_impl_type": "GQA",
		"swiglu_limits": []any{nil, 0.0, 0.0, 0.5}, "swiglu_limits_shared": []any{nil, nil, nil, 0.5}, "yarn_only_types": []string{"full_attention"}, "rms_norm_eps": 1e-5,
	}, names: []string{"attn_gate", "self_attn.g_proj", "exp_probs_b.bias", "moe.router_bias", "ffn_gate_inp", "moe.gate", "ffn_gate_shexp", "share_expert.gate_proj",
		"ffn_up_shexp", "share_expert.up_proj", "ffn_down_shexp", "share_expert.down_proj"},
		split: func(out map[string]tensor.View, layer int, part string, v tensor.View) bool {
			stack, ok := map[string]string{"ffn_gate_exps.weight": "gate", "ffn_up_exps.weight": "up", "ffn_down_exps.weight": "down"}[part]
			if ok {
				out[fmt.Sprintf("model.layers.%d.moe.%s_proj.weight", layer, stack)] = v
			}
			return ok
		}}
	f := l.folder(t, want)
	delete(f.Config, "num_key_value_heads")
	delete(f.Config, "num_experts_per_tok")
	delete(f.Tensors, "rope_freqs.weight") // of no rule for longer contexts
	for name, v := range f.Tensors {
		if strings.HasSuffix(name, "norm.weight") {
			hftest.SubtractOne(v.Data)
		}
	}
	return l, f, want
}

// TestStep35 expects the model whole, with its rotations, its limits, and with a layer that predicts further tokens.
func TestStep35(t *testing.T) {
	l, f, want := stepFolder(t)
	l.check(t, without(t, want, "rope_freqs.weight"), f)
	spoiled(t, f, map[string]any{
		"use_head_wise_attn_gate": false, "use_moe_router_bias": false, "use_qk_norm": false, "zero_centered": false, "moe_router_activation": "softmax", "att_impl_type": "MFA",
		"rope_theta": []float64{500000, 100, 200, 500000}, "partial_rotary_factors": []float64{0.5, 0.5, 1, 0.5}, "moe_every_n_layer": 2, "attention_bias": true,
		"layer_types": []string{"full_attention"}, "swiglu_limits": []any{-1.0}, "attention_other_setting": map[string]any{"head_dim": 64},
	})
	f.Config["rope_scaling"] = map[string]any{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
	got := open(t, write(t, f))
	factors := load(t, got, "rope_freqs.weight")
	if len(factors) != 16 || factors[0] != 1 || factors[7] != 8 || factors[8] != 1 { // half of each head rotates; the rest is padding
		t.Errorf("factors %v", factors)
	}
	delete(f.Config, "rope_scaling")

	rng := rand.New(rand.NewPCG(1, 2))
	for name, v := range maps.Clone(f.Tensors) { // the first layer again, as a predictor
		if rest, ok := strings.CutPrefix(name, "model.layers.0."); ok {
			f.Tensors["model.layers.4."+rest] = v
		}
	}
	f.Tensors["model.layers.4.eh_proj.weight"] = random(rng, 64, 128)
	f.Tensors["model.layers.4.transformer.shared_head.output.weight"] = random(rng, 320, 64)
	for _, n := range []string{"enorm", "hnorm", "transformer.shared_head.norm"} {
		f.Tensors["model.layers.4."+n+".weight"] = random(rng, 64)
	}
	f.Config["num_nextn_predict_layers"] = 1
	f.Config["layer_types"] = []string{"full_attention", "sliding_attention", "sliding_attention", "full_attention", "full_attention"}
	got = open(t, write(t, f))
	if n, _, _ := got.Uint("step35.nextn_predict_layers"); n != 1 {
		t.Errorf("%d predictors", n)
	}
	for to, from := range map[string]string{"nextn.eh_proj": "eh_proj", "nextn.shared_head_head": "transformer.shared_head.output", "ffn_up": "mlp.up_proj"} {
		v, _ := got.Tensor("blk.4." + to + ".weight")
		if v, err := got.Load(v); err != nil || !bytes.Equal(v.Data, f.Tensors["model.layers.4."+from+".weight"].Data) {
			t.Errorf("%s differs, %v", to, err)
		}
	}
	if x, y := load(t, got, "blk.4.nextn.enorm.weight")[3], floats(f.Tensors["model.layers.4.enorm.weight"])[3]; x != y+1 {
		t.Errorf("a norm's weight is %v, the folder has %v", x, y)
	}
}

// TestMiMo2 expects the model whole, with the layers that predict further tokens.
func TestMiMo2(t *testing.T) {
	want := randomModel(t, synthetic.Spec{Arch: "mimo2", Layers: 4, ValueSize: 24})
	l := layout{class: "MiMoV2FlashForCausalLM", config: map[string]any{
		"num_attention_heads": 4, "num_key_value_heads": 2, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 4, "head_dim": 32, "swa_head_dim": 32, "v_head_dim": 24, "swa_v_head_dim": 24,
		"hidden_act": "silu", "layernorm_epsilon": 1e-5, "hybrid_layer_pattern": []int{0, 1, 1, 0}, "moe_layer_freq": []int{0, 1, 1, 1}, "sliding_window": 40, "partial_rotary_factor": 0.5,
		"rope_theta": 500000.0, "swa_rope_theta": 100.0, "attention_value_scale": 0.707, "n_routed_experts": 6, "moe_intermediate_size": 64, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
		"n_group": 1, "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": nil, "n_shared_experts": nil, "attention_bias": false,
	}, names: []string{"attn_sinks.weight", "self_attn.attention_sink_bias", "exp_probs_b.bias", "mlp.gate.e_score_correction_bias"}}
	f := l.folder(t, want)
	l.check(t, want, f)
	spoiled(t, f, map[string]any{
		"hidden_act": "gelu", "swa_head_dim": 64, "swa_v_head_dim": 32, "swa_num_attention_heads": 8, "n_shared_experts": 1, "topk_method": "greedy", "scoring_func": "softmax",
		"norm_topk_prob": false, "attention_bias": true, "hybrid_layer_pattern": []int{0}, "moe_layer_freq": []int{1},
	})
	rng := rand.New(rand.NewPCG(1, 2))
	const root = "model.mtp.layers.0."
	for name, v := range maps.Clone(f.Tensors) {
		if rest, ok := strings.CutPrefix(name, "model.layers.0."); ok {
			f.Tensors[root+strings.Replace(rest, "post_attention", "pre_mlp", 1)] = v
		}
	}
	f.Tensors[root+"self_attn.k_proj.weight"], f.Tensors[root+"self_attn.v_proj.weight"] = random(rng, 4*32, 64), random(rng, 4*24, 64) // a window's heads
	f.Tensors[root+"eh_proj.weight"] = random(rng, 64, 128)
	for _, n := range []string{"enorm", "hnorm", "final_layernorm"} {
		f.Tensors[root+n+".weight"] = random(rng, 64)
	}
	got := open(t, write(t, f))
	if n, _, _ := got.Uint("mimo2.nextn_predict_layers"); n != 1 {
		t.Errorf("%d predictors", n)
	}
	for to, from := range map[string]string{"nextn.eh_proj": "eh_proj", "layer_output_norm": "final_layernorm", "attn_k": "self_attn.k_proj", "ffn_norm": "pre_mlp_layernorm"} {
		v, _ := got.Tensor("blk.4." + to + ".weight")
		if v, err := got.Load(v); err != nil || !bytes.Equal(v.Data, f.Tensors[root+from+".weight"].Data) {
			t.Errorf("%s differs, %v", to, err)
		}
	}
}

// TestFalconMamba expects Mamba with norms of the inputs of the steps, B and C, and their own epsilon.
func TestFalconMamba(t *testing.T) {
	f := recurrent(t, "MambaForCausalLM")
	want := open(t, write(t, f))
	f.Config["architectures"], f.Config["mixer_rms_eps"] = []string{"FalconMambaForCausalLM"}, 1e-4
	got := open(t, write(t, f))
	for _, w := range want.Tensors {
		g, _ := got.Tensor(w.Name)
		a, err1 := want.Load(w)
		b, err2 := got.Load(g)
		if err1 != nil || err2 != nil || !bytes.Equal(a.Data, b.Data) {
			t.Errorf("%s differs, %v, %v", w.Name, err1, err2)
		}
	}
	normed, _, _ := got.Bool("mamba.ssm.dt_b_c_rms")
	if eps, _, _ := got.Float("mamba.ssm.dt_b_c_rms_epsilon"); !normed || float32(eps) != 1e-4 {
		t.Errorf("normed: %v, with epsilon %v", normed, eps)
	}
}

// TestBamba takes the recurrences and the heads of Granite 4 for those of Bamba, of which half of each head rotates.
func TestBamba(t *testing.T) {
	f := recurrent(t, "GraniteMoeHybridForCausalLM")
	granite := open(t, write(t, f))
	rng := rand.New(rand.NewPCG(1, 2))
	for name, v := range maps.Clone(f.Tensors) {
		delete(f.Tensors, name)
		switch {
		case strings.Contains(name, "moe") || strings.Contains(name, "shared_mlp"):
			continue
		case name == "model.norm.weight":
			name = "model.final_layernorm.weight"
		}
		f.Tensors[strings.Replace(name, "post_attention_layernorm", "pre_ff_layernorm", 1)] = v
	}
	for l := range 3 {
		for name, shape := range map[string][2]int{"gate_proj": {hftest.FFN, hftest.Width}, "up_proj": {hftest.FFN, hftest.Width}, "down_proj": {hftest.Width, hftest.FFN}} {
			f.Tensors[fmt.Sprintf("model.layers.%d.feed_forward.%s.weight", l, name)] = random(rng, shape[0], shape[1])
		}
	}
	f.Config["architectures"], f.Config["attn_layer_indices"], f.Config["attn_rotary_emb"] = []string{"BambaForCausalLM"}, []int{1}, 8
	for _, key := range []string{"layer_types", "num_local_experts", "embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling", "position_embedding_type"} {
		delete(f.Config, key)
	}
	got := open(t, write(t, f))
	for _, name := range []string{"blk.0.ssm_in.weight", "blk.2.ssm_a", "blk.1.attn_v.weight", "blk.0.ffn_norm.weight", "output_norm.weight"} {
		a, b := load(t, granite, name), load(t, got, name)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s differs", name)
		}
	}
	q, from := load(t, got, "blk.1.attn_q.weight"), floats(f.Tensors["model.layers.1.self_attn.q_proj.weight"])
	const size, dims = 16, 8
	for i := range 2 * size {
		row := i
		if j := i % size; j < dims { // pair j/2 has the values j/2 and j/2+dims/2 of the folder
			row = i - j + j/2 + j%2*dims/2
		}
		for c := range hftest.Width {
			if q[i*hftest.Width+c] != from[row*hftest.Width+c] {
				t.Fatalf("row %d of the queries is not row %d of the folder", i, row)
			}
		}
	}
	if n, _, _ := got.Uint("granitehybrid.rope.dimension_count"); n != dims {
		t.Errorf("%d values rotate", n)
	}
	if turns, _, _ := got.Bool("granitehybrid.rope.scaling.finetuned"); !turns {
		t.Error("heads do not rotate")
	}
	spoiled(t, f, map[string]any{"attn_rotary_emb": 4, "attn_layer_indices": []int{3}, "hidden_act": "gelu"})
}

// TestLatentHeads joins the matrices of several heads that expand the latent of DeepSeek, and expects each back in its place.
func TestLatentHeads(t *testing.T) {
	const heads, plain, value, rank = 4, 32, 24, 32
	for _, class := range []string{"DeepseekV3ForCausalLM", "Mistral4ForCausalLM"} {
		t.Run(class, func(t *testing.T) {
			spec := synthetic.Spec{Arch: "deepseek2", KeySize: plain + 16, ValueSize: value, Latent: synthetic.Latent{QRank: 32, Shared: 1, Norm: true}}
			config := map[string]any{"rope_theta": 10000.0}
			if strings.HasPrefix(class, "Mistral") {
				spec.Arch = "mistral4"
				config = map[string]any{"model_type": "mistral4", "rope_parameters": map[string]any{
					"type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 0.707, "mscale_all_dim": 0.707,
					"llama_4_scaling_beta": 0.5,
				}}
			}
			maps.Copy(config, map[string]any{
				"hidden_act": "silu", "num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": nil, "intermediate_size": 64, "kv_lora_rank": rank, "q_lora_rank": 32, "qk_rope_head_dim": 16,
				"qk_nope_head_dim": plain, "v_head_dim": value, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 64, "first_k_dense_replace": 0,
				"routed_scaling_factor": 1.5, "norm_topk_prob": true, "scoring_func": "softmax",
			})
			want := randomModel(t, spec)
			l := layout{class: class, config: config, split: func(out map[string]tensor.View, layer int, part string, v tensor.View) bool {
				name := fmt.Sprintf("model.layers.%d.self_attn.kv_b_proj.weight", layer)
				up, ok := out[name]
				if !ok {
					up = tensor.View{Type: tensor.F32, Shape: []int{heads * (plain + value), rank}, Data: make([]byte, 4*heads*(plain+value)*rank)}
				}
				for i := range v.Elems() {
					row, col := i/rank/value*(plain+value)+plain+i/rank%value, i%rank
					switch part {
					case "attn_k_b.weight":
						row, col = i/plain/rank*(plain+value)+i%plain, i/plain%rank
					case "attn_v_b.weight":
					case "ffn_gate_up_exps.weight", "ffn_down_exps.weight":
						if spec.Arch == "deepseek2" { // its folders have the experts apart
							return false
						}
						out[fmt.Sprintf("model.layers.%d.mlp.experts.%s_proj", layer, strings.TrimSuffix(strings.TrimPrefix(part, "ffn_"), "_exps.weight"))] = v
						return true
					default:
						return false
					}
					copy(up.Data[4*(row*rank+col):][:4], v.Data[4*i:])
				}
				out[name] = up
				return true
			}}
			compareTensors(t, want, open(t, write(t, l.folder(t, want))))
		})
	}
}
