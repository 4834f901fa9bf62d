package hf

import (
	"fmt"
	"slices"
)

// kimiLinear has Kimi delta attention in most layers and latent attention without rotation in the others.
func kimiLinear(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if !c.Has("max_position_embeddings") && c.Has("model_max_length") {
		c.Values["max_position_embeddings"] = c.Values["model_max_length"]
	}
	s := b.Decoder("kimi-linear")
	b.RMSEps(1e-5)
	k := b.kimiSettings(s)
	b.RMSEnds(s.Width, false)
	heads, kvHeads, l := make([]int, s.Layers), make([]int, s.Layers), 0
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		if heads[l] = s.Heads; slices.Contains(k.full, l+1) {
			kvHeads[l] = s.Heads
			k.latent(b, s, to, from)
		} else {
			k.delta(b, s, to, from)
		}
		if l < k.dense {
			b.Gated(s, to, from)
		} else {
			b.Mixture(s, k.experts, k.ffn, to, from("block_sparse_moe.gate.weight"), func(e int, part string) string {
				return from(fmt.Sprintf("block_sparse_moe.experts.%d.%s.weight", e, part))
			}, "w1", "w3", "w2")
			b.Copy(to("exp_probs_b.bias"), from("block_sparse_moe.gate.e_score_correction_bias"), k.experts)
			b.SharedExpert(s, k.shared*k.ffn, to, from("block_sparse_moe.shared_experts."))
		}
		l++
	})
	b.SetLayers(".attention.head_count", heads)
	b.SetLayers(".attention.head_count_kv", kvHeads)
}

// kimi is the settings of Kimi Linear.
type kimi struct {
	size, taps                 int   // of delta attention
	full                       []int // the layers that attend, from 1 on
	rank, plain, turned, value int   // of latent attention
	dense, experts, ffn        int
	shared                     int
}

// kimiSettings reads the settings and adds them.
func (b *builder) kimiSettings(s Shape) kimi {
	c := b.Config
	linear := c.Sub("linear_attn_config")
	k := kimi{
		size: linear.Count("head_dim", 1, MaxHeads), taps: linear.CountOr("short_conv_kernel_size", 4, 2, 64),
		rank: c.Count("kv_lora_rank", 1, MaxWidth), plain: c.Count("qk_nope_head_dim", 1, MaxHeads), turned: c.Count("qk_rope_head_dim", 1, MaxHeads),
		value: c.Count("v_head_dim", 1, MaxHeads), dense: c.CountOr("first_k_dense_replace", 0, 0, s.Layers),
		ffn: c.Count("moe_intermediate_size", 1, MaxWidth), shared: c.CountOr("num_shared_experts", 1, 1, 1<<8),
	}
	if n := linear.CountOr("num_heads", s.Heads, 1, MaxHeads); n != s.Heads {
		linear.Fail("num_heads is %d; it must be num_attention_heads (%d)", n, s.Heads)
	}
	if !linear.Value("full_attn_layers", &k.full, "an array of layers") {
		linear.Fail("full_attn_layers is missing")
	}
	if !c.BoolOr("mla_use_nope", true) {
		c.Fail("mla_use_nope must be true")
	}
	for key, want := range map[string]int{"q_lora_rank": 0, "num_nextn_predict_layers": 0, "moe_layer_freq": 1, "num_expert_group": 1, "topk_group": 1} {
		if n := c.CountOr(key, want, 0, MaxWidth); n != want {
			c.Fail("%s is %d; only %d is supported", key, n, want)
		}
	}
	c.Only("moe_router_activation_func", "sigmoid")
	if !c.BoolOr("moe_renormalize", true) {
		c.Fail("moe_renormalize must be true")
	}
	k.experts = c.Count("num_experts", 1, MaxExperts)
	b.SetCount(".expert_count", k.experts)
	b.SetCount(".expert_used_count", c.Count(c.First("num_experts_per_token", "num_experts_per_tok"), 1, k.experts))
	b.SetCount(".expert_shared_count", k.shared)
	b.SetCount(".expert_feed_forward_length", k.ffn)
	b.SetCount(".leading_dense_block_count", k.dense)
	b.SetFloat(".expert_weights_scale", c.FloatOr("routed_scaling_factor", 1, 0, 1e4))
	const sigmoid = 2
	b.SetCount(".expert_gating_func", sigmoid)
	b.SetCount(".kda.head_dim", k.size)
	b.SetCount(".ssm.conv_kernel", k.taps)
	b.SetCount(".attention.kv_lora_rank", k.rank)
	b.SetCount(".rope.dimension_count", k.turned)
	b.SetCountOnce(".attention.key_length", k.rank+k.turned)
	b.SetCountOnce(".attention.value_length", k.rank)
	b.SetCount(".attention.key_length_mla", k.plain+k.turned)
	b.SetCount(".attention.value_length_mla", k.value)
	return k
}

// delta adds Kimi delta attention.
func (k kimi) delta(b *builder, s Shape, to, from func(string) string) {
	inner := s.Heads * k.size
	for _, t := range []string{"q", "k", "v"} {
		b.Copy(to("attn_"+t+".weight"), from("self_attn."+t+"_proj.weight"), inner, s.Width)
		b.Values(to("ssm_conv1d_"+t+".weight"), from("self_attn."+t+"_conv1d.weight"), []int{inner, 1, k.taps}, []int{inner, 1, k.taps}, nil)
	}
	for _, t := range []string{"f", "g"} {
		b.Copy(to("ssm_"+t+"_a.weight"), from("self_attn."+t+"_a_proj.weight"), k.size, s.Width)
		b.Copy(to("ssm_"+t+"_b.weight"), from("self_attn."+t+"_b_proj.weight"), inner, k.size)
	}
	b.Copy(to("ssm_beta.weight"), from("self_attn.b_proj.weight"), s.Heads, s.Width)
	b.Values(to("ssm_a"), from("self_attn.A_log"), []int{1, 1, s.Heads, 1}, []int{s.Heads, 1}, Decay)
	b.Copy(to("ssm_dt.bias"), from("self_attn.dt_bias"), inner)
	b.Norm(to("ssm_norm.weight"), from("self_attn.o_norm.weight"), k.size, 0)
	b.Copy(to("attn_output.weight"), from("self_attn.o_proj.weight"), s.Width, inner)
}

// latent adds latent attention. GGUF may have the matrices of keys and values as one, as the folder does.
func (k kimi) latent(b *builder, s Shape, to, from func(string) string) {
	b.Copy(to("attn_q.weight"), from("self_attn.q_proj.weight"), s.Heads*(k.plain+k.turned), s.Width)
	b.Copy(to("attn_kv_a_mqa.weight"), from("self_attn.kv_a_proj_with_mqa.weight"), k.rank+k.turned, s.Width)
	b.Norm(to("attn_kv_a_norm.weight"), from("self_attn.kv_a_layernorm.weight"), k.rank, 0)
	b.Copy(to("attn_kv_b.weight"), from("self_attn.kv_b_proj.weight"), s.Heads*(k.plain+k.value), k.rank)
	b.Copy(to("attn_output.weight"), from("self_attn.o_proj.weight"), s.Width, s.Heads*k.value)
}
