package hf

import (
	"fmt"
)

// qwen2moe has a mixture in each layer and an expert that all rows run, weighed by a sigmoid.
func qwen2moe(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	var dense []int
	if c.Value("mlp_only_layers", &dense, "an array of layers"); len(dense) > 0 || c.CountOr("decoder_sparse_step", 1, 0, MaxLayers) != 1 {
		c.Fail("layers without experts (mlp_only_layers, decoder_sparse_step) are not supported")
	}
	s := b.qwen("qwen2moe")
	experts := b.Experts("num_experts")
	FolderSet(b.DecoderBuilder.FolderBuilder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", false))
	ffn, shared := c.Count("moe_intermediate_size", 1, MaxWidth), c.Count("shared_expert_intermediate_size", 1, MaxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.SetCount(".expert_shared_feed_forward_length", shared)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.Mixture(s, experts, ffn, to, from("mlp.gate.weight"), ExpertOf(from), "gate_proj", "up_proj", "down_proj")
		b.SharedExpert(s, shared, to, from("mlp.shared_expert."))
		b.GatheredAs(to("ffn_gate_inp_shexp.weight"), from("mlp.shared_expert_gate.weight"), []int{1, s.Width}, []int{s.Width}, func(i int) int { return i })
	})
}

func olmoe(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if c.Has("clip_qkv") {
		c.Fail("clip_qkv is not supported")
	}
	s := b.Decoder("olmoe")
	b.RMSEps(1e-5)
	experts := b.Experts("num_experts")
	FolderSet(b.DecoderBuilder.FolderBuilder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", false))
	b.RMSEnds(s.Width, false)
	b.Rope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Heads*s.Size, s.KVHeads*s.Size, to, from, 0)
		b.Mixture(s, experts, s.FFN, to, from("mlp.gate.weight"), ExpertOf(from), "gate_proj", "up_proj", "down_proj")
	})
}

// graniteMoE has the gates of its experts and what they gate in one tensor, the gates first.
func graniteMoE(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.Decoder("granitemoe")
	b.RMSEps(1e-6)
	b.graniteScales()
	experts := b.Experts("num_local_experts")
	shared := b.Config.CountOr("shared_intermediate_size", 0, 0, MaxWidth)
	if shared > 0 {
		b.SetCount(".expert_shared_feed_forward_length", shared)
	}
	b.RMSEnds(s.Width, true)
	b.Rope(s.Size)
	half := func(to, from string, n, ffn, which int) { // of [n, 2*ffn, width]
		folder, shape := []int{n, 2 * ffn, s.Width}, []int{n, ffn, s.Width}
		if n == 0 {
			folder, shape = folder[1:], shape[1:]
		}
		b.GatheredAs(to, from, folder, shape, func(i int) int { return i/ffn*2*ffn + which*ffn + i%ffn })
	}
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.TurnedAttention(s, to, from)
		b.Copy(to("ffn_gate_inp.weight"), from("block_sparse_moe.router.layer.weight"), experts, s.Width)
		half(to("ffn_gate_exps.weight"), from("block_sparse_moe.input_linear.weight"), experts, s.FFN, 0)
		half(to("ffn_up_exps.weight"), from("block_sparse_moe.input_linear.weight"), experts, s.FFN, 1)
		b.Copy(to("ffn_down_exps.weight"), from("block_sparse_moe.output_linear.weight"), experts, s.Width, s.FFN)
		if shared > 0 {
			half(to("ffn_gate_shexp.weight"), from("shared_mlp.input_linear.weight"), 0, shared, 0)
			half(to("ffn_up_shexp.weight"), from("shared_mlp.input_linear.weight"), 0, shared, 1)
			b.Copy(to("ffn_down_shexp.weight"), from("shared_mlp.output_linear.weight"), s.Width, shared)
		}
	})
}

// phiMoE has LayerNorm, biases, and a rotation whose factor on cosine and sine is given for short texts and for long ones.
func phiMoE(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("phimoe")
	b.RMSEps(1e-5)
	rope, _ := b.RopeConfig()
	if short, long := rope.FloatOr("short_mscale", 1, 1e-3, 1e3), rope.FloatOr("long_mscale", 1, 1e-3, 1e3); short != long {
		rope.Fail("short_mscale is %v; it must be long_mscale (%v)", short, long)
	}
	b.phi3Rope(s, "long_mscale")
	b.SetCount(".attention.sliding_window", b.Window())
	b.SetFloat(".router_jitter_noise", c.FloatOr("router_jitter_noise", 0.01, 0, 1))
	experts := b.Experts("num_local_experts")
	b.Ends("model.", s.Width, false, func() { b.LayerNorm("output_norm", "model.norm", s.Width) })
	b.CopyIf("output.bias", "lm_head.bias", b.Vocab)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.Width)
		b.LayerNorm(to("ffn_norm"), from("post_attention_layernorm"), s.Width)
		b.Attention(s, to, from)
		b.sparseBlock(s, experts, to, from)
	})
}

// sparseBlock adds a mixture as Mixtral names it.
func (b *builder) sparseBlock(s Shape, experts int, to, from func(string) string) {
	b.Mixture(s, experts, s.FFN, to, from("block_sparse_moe.gate.weight"), func(e int, part string) string {
		return from(fmt.Sprintf("block_sparse_moe.experts.%d.%s.weight", e, part))
	}, "w1", "w3", "w2")
}
