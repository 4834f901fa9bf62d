package hf

import (
	"fmt"

	"grove/weights/hf/folder"
)

// qwen2moe has a mixture in each layer and an expert that all rows run, weighed by a sigmoid.
func qwen2moe(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	var dense []int
	if c.Value("mlp_only_layers", &dense, "an array of layers"); len(dense) > 0 || c.CountOr("decoder_sparse_step", 1, 0, maxLayers) != 1 {
		c.Fail("layers without experts (mlp_only_layers, decoder_sparse_step) are not supported")
	}
	s := b.qwen("qwen2moe")
	experts := b.Experts("num_experts")
	folder.Set(b.Builder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", false))
	ffn, shared := c.Count("moe_intermediate_size", 1, maxWidth), c.Count("shared_expert_intermediate_size", 1, maxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.SetCount(".expert_shared_feed_forward_length", shared)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.mixture(s, experts, ffn, to, from("mlp.gate.weight"), expertOf(from), "gate_proj", "up_proj", "down_proj")
		b.sharedExpert(s, shared, to, from("mlp.shared_expert."))
		b.GatheredAs(to("ffn_gate_inp_shexp.weight"), from("mlp.shared_expert_gate.weight"), []int{1, s.width}, []int{s.width}, func(i int) int { return i })
	})
}

// expertOf names a matrix of an expert as most families do.
func expertOf(from func(string) string) func(expert int, part string) string {
	return func(e int, part string) string { return from(fmt.Sprintf("mlp.experts.%d.%s.weight", e, part)) }
}

// eitherMixture adds a router and its experts, of ffn inner values, which folders have one by one, or as two tensors.
func (b *builder) eitherMixture(s shape, experts, ffn int, to, from func(string) string) {
	both := from("mlp.experts.gate_up_proj")
	if !b.Has(both) {
		b.mixture(s, experts, ffn, to, from("mlp.gate.weight"), expertOf(from), "gate_proj", "up_proj", "down_proj")
		return
	}
	b.Copy(to("ffn_gate_inp.weight"), from("mlp.gate.weight"), experts, s.width)
	b.Copy(to("ffn_gate_up_exps.weight"), both, experts, 2*ffn, s.width)
	b.Copy(to("ffn_down_exps.weight"), from("mlp.experts.down_proj"), experts, s.width, ffn)
}

// sharedExpert adds the block of ffn inner values that all rows run, whose tensors are below root.
func (b *builder) sharedExpert(s shape, ffn int, to func(string) string, root string) {
	b.Copy(to("ffn_gate_shexp.weight"), root+"gate_proj.weight", ffn, s.width)
	b.Copy(to("ffn_up_shexp.weight"), root+"up_proj.weight", ffn, s.width)
	b.Copy(to("ffn_down_shexp.weight"), root+"down_proj.weight", s.width, ffn)
}

func olmoe(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if c.Has("clip_qkv") {
		c.Fail("clip_qkv is not supported")
	}
	s := b.decoder("olmoe")
	b.RMSEps(1e-5)
	experts := b.Experts("num_experts")
	folder.Set(b.Builder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", false))
	b.rmsEnds(s.width, false)
	b.Rope(s.size)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.headNorms(s.heads*s.size, s.kvHeads*s.size, to, from, 0)
		b.mixture(s, experts, s.ffn, to, from("mlp.gate.weight"), expertOf(from), "gate_proj", "up_proj", "down_proj")
	})
}

// graniteMoE has the gates of its experts and what they gate in one tensor, the gates first.
func graniteMoE(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.decoder("granitemoe")
	b.RMSEps(1e-6)
	b.graniteScales()
	experts := b.Experts("num_local_experts")
	shared := b.Config.CountOr("shared_intermediate_size", 0, 0, maxWidth)
	if shared > 0 {
		b.SetCount(".expert_shared_feed_forward_length", shared)
	}
	b.rmsEnds(s.width, true)
	b.Rope(s.size)
	half := func(to, from string, n, ffn, which int) { // of [n, 2*ffn, width]
		folder, shape := []int{n, 2 * ffn, s.width}, []int{n, ffn, s.width}
		if n == 0 {
			folder, shape = folder[1:], shape[1:]
		}
		b.GatheredAs(to, from, folder, shape, func(i int) int { return i/ffn*2*ffn + which*ffn + i%ffn })
	}
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.Copy(to("ffn_gate_inp.weight"), from("block_sparse_moe.router.layer.weight"), experts, s.width)
		half(to("ffn_gate_exps.weight"), from("block_sparse_moe.input_linear.weight"), experts, s.ffn, 0)
		half(to("ffn_up_exps.weight"), from("block_sparse_moe.input_linear.weight"), experts, s.ffn, 1)
		b.Copy(to("ffn_down_exps.weight"), from("block_sparse_moe.output_linear.weight"), experts, s.width, s.ffn)
		if shared > 0 {
			half(to("ffn_gate_shexp.weight"), from("shared_mlp.input_linear.weight"), 0, shared, 0)
			half(to("ffn_up_shexp.weight"), from("shared_mlp.input_linear.weight"), 0, shared, 1)
			b.Copy(to("ffn_down_shexp.weight"), from("shared_mlp.output_linear.weight"), s.width, shared)
		}
	})
}
