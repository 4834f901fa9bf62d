package hf

import (
	"fmt"
	"math"
	"slices"
)

// lfm2 has short convolutions in the place of attention in most layers.
func lfm2(b *builder) { b.lfm2("lfm2") }

func lfm2moe(b *builder) { b.lfm2("lfm2moe") }

func (b *builder) lfm2(arch string) {
	c := b.Config
	if c.BoolOr("conv_bias", false) {
		c.Fail("conv_bias must be false")
	}
	if !c.Has("intermediate_size") && c.Has("block_ff_dim") {
		c.Values["intermediate_size"] = c.Values["block_ff_dim"]
	}
	if !c.Has("tie_word_embeddings") && c.Has("tie_embedding") {
		c.Values["tie_word_embeddings"] = c.Values["tie_embedding"]
	}
	s := b.Decoder(arch)
	if arch == "lfm2" {
		s.FFN = b.lfm2Inner(s.FFN)
		b.SetCountOnce(".feed_forward_length", s.FFN)
	}
	b.SetFloat(".attention.layer_norm_rms_epsilon", c.FloatOr(c.First("norm_eps", "block_norm_eps"), 1e-5, 0, 1))
	b.Rope(s.Size)
	taps := c.CountOr("conv_L_cache", 3, 2, 64)
	b.SetCount(".shortconv.l_cache", taps)
	attends := b.lfm2Layers(s.Layers)
	dense, experts, ffn := s.Layers, 0, 0
	if arch == "lfm2moe" {
		dense, experts, ffn = b.lfm2Mixture(s)
	}
	b.Ends("model.", s.Width, true, func() { b.Norm("token_embd_norm.weight", "model.embedding_norm.weight", s.Width, 0) })
	kvHeads, l := make([]int, s.Layers), 0
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("operator_norm.weight"), s.Width, 0)
		b.Norm(to("ffn_norm.weight"), from("ffn_norm.weight"), s.Width, 0)
		if attends[l] {
			kvHeads[l] = s.KVHeads
			b.lfm2Attention(s, to, from)
		} else {
			b.Copy(to("shortconv.in_proj.weight"), from("conv.in_proj.weight"), 3*s.Width, s.Width)
			b.Values(to("shortconv.conv.weight"), from("conv.conv.weight"), []int{s.Width, 1, taps}, []int{s.Width, taps}, nil)
			b.Copy(to("shortconv.out_proj.weight"), from("conv.out_proj.weight"), s.Width, s.Width)
		}
		if l < dense {
			b.Copy(to("ffn_gate.weight"), from("feed_forward.w1.weight"), s.FFN, s.Width)
			b.Copy(to("ffn_up.weight"), from("feed_forward.w3.weight"), s.FFN, s.Width)
			b.Copy(to("ffn_down.weight"), from("feed_forward.w2.weight"), s.Width, s.FFN)
		} else {
			b.Mixture(s, experts, ffn, to, from("feed_forward.gate.weight"), func(e int, part string) string {
				return from(fmt.Sprintf("feed_forward.experts.%d.%s.weight", e, part))
			}, "w1", "w3", "w2")
			b.CopyIf(to("exp_probs_b.bias"), from("feed_forward.expert_bias"), experts)
		}
		l++
	})
	b.SetLayers(".attention.head_count_kv", kvHeads)
}

// lfm2Attention adds the attention of a layer.
func (b *builder) lfm2Attention(s Shape, to, from func(string) string) {
	b.Copy(to("attn_q.weight"), from("self_attn.q_proj.weight"), s.Heads*s.Size, s.Width)
	b.Copy(to("attn_k.weight"), from("self_attn.k_proj.weight"), s.KVHeads*s.Size, s.Width)
	b.Copy(to("attn_v.weight"), from("self_attn.v_proj.weight"), s.KVHeads*s.Size, s.Width)
	b.Copy(to("attn_output.weight"), from("self_attn.out_proj.weight"), s.Width, s.Heads*s.Size)
	b.Norm(to("attn_q_norm.weight"), from("self_attn.q_layernorm.weight"), s.Size, 0)
	b.Norm(to("attn_k_norm.weight"), from("self_attn.k_layernorm.weight"), s.Size, 0)
}

// lfm2Inner returns the inner values of a feed-forward block, which the class computes of its settings: two thirds, times a factor, rounded up.
func (b *builder) lfm2Inner(n int) int {
	c := b.Config
	if !c.BoolOr("block_auto_adjust_ff_dim", true) {
		return n
	}
	n = 2 * n / 3
	n = int(c.FloatOr("block_ffn_dim_multiplier", 1, 1e-3, 1e3) * float64(n))
	multiple := c.CountOr("block_multiple_of", 256, 1, MaxWidth)
	return int(min(math.MaxInt32, int64(n+multiple-1)/int64(multiple)*int64(multiple)))
}

// lfm2Layers returns which layers attend.
func (b *builder) lfm2Layers(layers int) []bool {
	c := b.Config
	attends := make([]bool, layers)
	var kinds []string
	var full []int
	switch {
	case c.Value("layer_types", &kinds, "an array of kinds"):
		if len(kinds) != layers {
			c.Fail("layer_types has %d entries, there are %d layers", len(kinds), layers)
			return attends
		}
		for i, kind := range kinds {
			if attends[i] = kind == "full_attention"; !attends[i] && kind != "conv" {
				c.Fail("layer_types has %.40q for layer %d; it must be full_attention or conv", kind, i)
			}
		}
	case c.Value("full_attn_idxs", &full, "an array of layers"):
		for i := range attends {
			attends[i] = slices.Contains(full, i)
		}
	default:
		c.Fail("layer_types is missing")
	}
	return attends
}

// lfm2Mixture reads the settings of a mixture.
func (b *builder) lfm2Mixture(s Shape) (dense, experts, ffn int) {
	c := b.Config
	if !c.BoolOr("norm_topk_prob", true) {
		c.Fail("norm_topk_prob must be true")
	}
	dense, ffn = c.CountOr("num_dense_layers", 0, 0, s.Layers), c.Count("moe_intermediate_size", 1, MaxWidth)
	experts = b.Experts("num_experts")
	b.SetCount(".leading_dense_block_count", dense)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.SetFloat(".expert_weights_scale", c.FloatOr("routed_scaling_factor", 1, 0, 1e4))
	const sigmoid = 2
	b.SetCount(".expert_gating_func", sigmoid)
	return dense, experts, ffn
}
