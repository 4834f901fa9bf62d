package hf

import (
	"fmt"
	"math"
	"strings"

	"grove/weights/hf/folder"
)

// layers calls layer for each layer, with functions that complete the names of its tensors: as GGUF and
// as the folder has them below root.
func (b *builder) layers(n int, root string, layer func(to, from func(string) string)) {
	for i := 0; i < n && b.OK(); i++ {
		layer(
			func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) },
			func(name string) string { return fmt.Sprintf("%s%d.%s", root, i, name) },
		)
	}
}

// ends adds the embedding table, the final norm (norm does it) and the output head, below prefix; the head
// is left out where it is the table. Folders that read images too may have it beside the text part.
func (b *builder) ends(prefix string, width int, tied bool, norm func()) {
	table, head := "embed_tokens.weight", "lm_head.weight"
	if part, _, _ := strings.Cut(prefix, "."); b.Has(part + "." + head) {
		head = part + "." + head
	}
	b.VocabOf(prefix + table)
	b.Copy("token_embd.weight", prefix+table, b.Vocab, width)
	norm()
	b.Head(head, width, tied)
}

// rmsEnds is ends for a family with RMSNorm whose tensors are below model.
func (b *builder) rmsEnds(width int, tied bool) {
	b.ends("model.", width, tied, func() { b.Norm("output_norm.weight", "model.norm.weight", width, 0) })
}

// rmsDecoder is decoder for a family with RMSNorm, whose epsilon is other where the folder does not say, with rmsEnds and the
// rotation of whole heads.
func (b *builder) rmsDecoder(arch string, other float64, tied bool) shape {
	s := b.decoder(arch)
	b.RMSEps(other)
	b.rmsEnds(s.width, tied)
	b.Rope(s.size)
	return s
}

const layerRoot = "model.layers."

// attention adds the projections of a family whose heads rotate by halves, as in GGUF.
func (b *builder) attention(s shape, to, from func(string) string) {
	b.Both(to("attn_q"), from("self_attn.q_proj"), s.heads*s.size, s.width)
	b.Both(to("attn_k"), from("self_attn.k_proj"), s.kvHeads*s.size, s.width)
	b.Both(to("attn_v"), from("self_attn.v_proj"), s.kvHeads*s.size, s.width)
	b.Both(to("attn_output"), from("self_attn.o_proj"), s.width, s.heads*s.size)
}

// headNorms adds the norms of queries and keys.
func (b *builder) headNorms(q, k int, to, from func(string) string, add float32) {
	b.Norm(to("attn_q_norm.weight"), from("self_attn.q_norm.weight"), q, add)
	b.Norm(to("attn_k_norm.weight"), from("self_attn.k_norm.weight"), k, add)
}

// norms adds the norms before the two blocks of a layer.
func (b *builder) norms(width int, to, from func(string) string) {
	b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), width, 0)
	b.Norm(to("ffn_norm.weight"), from("post_attention_layernorm.weight"), width, 0)
}

// gated adds a gated feed-forward block.
func (b *builder) gated(s shape, to, from func(string) string) {
	b.Copy(to("ffn_gate.weight"), from("mlp.gate_proj.weight"), s.ffn, s.width)
	b.Copy(to("ffn_up.weight"), from("mlp.up_proj.weight"), s.ffn, s.width)
	b.Copy(to("ffn_down.weight"), from("mlp.down_proj.weight"), s.width, s.ffn)
}

// mixture adds a mixture of gated blocks; name gives the tensor of an expert.
func (b *builder) mixture(s shape, experts, ffn int, to func(string) string, router string, name func(expert int, part string) string, gate, up, down string) {
	part := func(which string) func(int) string {
		return func(e int) string { return name(e, which) }
	}
	b.Copy(to("ffn_gate_inp.weight"), router, experts, s.width)
	b.Stacked(to("ffn_gate_exps.weight"), part(gate), experts, ffn, s.width)
	b.Stacked(to("ffn_up_exps.weight"), part(up), experts, ffn, s.width)
	b.Stacked(to("ffn_down_exps.weight"), part(down), experts, s.width, ffn)
}

// turnedAttention adds the projections of llama, whose queries and keys change their order.
func (b *builder) turnedAttention(s shape, to, from func(string) string) {
	b.Turned(to("attn_q"), from("self_attn.q_proj"), s.heads, s.size, s.width)
	b.Turned(to("attn_k"), from("self_attn.k_proj"), s.kvHeads, s.size, s.width)
	b.Both(to("attn_v"), from("self_attn.v_proj"), s.kvHeads*s.size, s.width)
	b.Both(to("attn_output"), from("self_attn.o_proj"), s.width, s.heads*s.size)
}

func llama(b *builder) {
	b.Config.Only("hidden_act", "silu")
	b.WithinWindow()
	s := b.rmsDecoder("llama", 1e-6, false)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.gated(s, to, from)
	})
}

func mixtral(b *builder) {
	b.Config.Only("hidden_act", "silu")
	b.WithinWindow()
	s := b.decoder("llama")
	b.RMSEps(1e-5)
	experts := b.Experts("num_local_experts")
	b.rmsEnds(s.width, false)
	b.Rope(s.size)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.mixture(s, experts, s.ffn, to, from("block_sparse_moe.gate.weight"), func(e int, part string) string {
			return from(fmt.Sprintf("block_sparse_moe.experts.%d.%s.weight", e, part))
		}, "w1", "w3", "w2")
	})
}

func qwen2(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.qwen("qwen2")
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.gated(s, to, from)
	})
}

// qwen adds what the families of Qwen share.
func (b *builder) qwen(arch string) shape {
	if b.Config.BoolOr("use_sliding_window", false) {
		b.Config.Fail("use_sliding_window is not supported")
	}
	s := b.rmsDecoder(arch, 1e-6, false)
	return s
}

func qwen3(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.qwen("qwen3")
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.headNorms(s.size, s.size, to, from, 0)
		b.gated(s, to, from)
	})
}

func qwen3moe(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	var dense []int
	if c.Value("mlp_only_layers", &dense, "an array of layers"); len(dense) > 0 || c.CountOr("decoder_sparse_step", 1, 0, maxLayers) != 1 {
		c.Fail("layers without experts (mlp_only_layers, decoder_sparse_step) are not supported")
	}
	if !c.BoolOr("norm_topk_prob", false) {
		c.Fail("norm_topk_prob must be true")
	}
	s := b.qwen("qwen3moe")
	experts := b.Experts(c.First("num_experts", "num_local_experts"))
	ffn := c.Count("moe_intermediate_size", 1, maxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.headNorms(s.size, s.size, to, from, 0)
		b.mixture(s, experts, ffn, to, from("mlp.gate.weight"), func(e int, part string) string {
			return from(fmt.Sprintf("mlp.experts.%d.%s.weight", e, part))
		}, "gate_proj", "up_proj", "down_proj")
	})
}

func phi3(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.decoder("phi3")
	b.RMSEps(1e-5)
	b.phi3Rope(s)
	b.SetCount(".attention.sliding_window", b.Window())
	b.rmsEnds(s.width, false)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.Copy(to("attn_qkv.weight"), from("self_attn.qkv_proj.weight"), (s.heads+2*s.kvHeads)*s.size, s.width)
		b.Copy(to("attn_output.weight"), from("self_attn.o_proj.weight"), s.width, s.heads*s.size)
		b.Copy(to("ffn_up.weight"), from("mlp.gate_up_proj.weight"), 2*s.ffn, s.width) // the gate is its first half
		b.Copy(to("ffn_down.weight"), from("mlp.down_proj.weight"), s.width, s.ffn)
	})
}

// phi3Rope adds the rotation of Phi 3: of a part of the values of a head, with a list of factors for short
// texts and one for long ones in the variants of longer contexts.
func (b *builder) phi3Rope(s shape) {
	c, theta := b.RopeConfig()
	part := b.Config.FloatOr("partial_rotary_factor", 1, 0.01, 1)
	dims := int(c.FloatOr("partial_rotary_factor", part, 0.01, 1) * float64(s.size))
	original := b.Config.CountOr("original_max_position_embeddings", s.context, 1, maxContext)
	original = c.CountOr("original_max_position_embeddings", original, 1, maxContext)
	b.SetCount(".rope.dimension_count", dims)
	b.SetFloat(".rope.freq_base", theta)
	b.SetCount(".rope.scaling.original_context_length", original)
	kind := c.TextOr(c.First("rope_type", "type"), "default")
	switch kind {
	case "default":
		return
	case "longrope", "su":
	default:
		c.Fail("type is %.40q; it must be default, longrope or su", kind)
		return
	}
	attention := 1.0
	if scale := float64(s.context) / float64(original); scale > 1 && original > 1 {
		attention = math.Sqrt(1 + math.Log(scale)/math.Log(float64(original)))
	}
	b.SetFloat(".rope.scaling.attn_factor", c.FloatOr("attention_factor", attention, 1e-3, 1e3))
	long, short := c.Floats("long_factor", dims/2), c.Floats("short_factor", dims/2)
	if b.OK() {
		b.AddFloats("rope_factors_long.weight", long)
		b.AddFloats("rope_factors_short.weight", short)
	}
}

func olmo2(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.decoder("olmo2")
	if b.Window() > 0 { // of OLMo 3
		b.windows(s, func(layer int) bool { return layer%4 == 3 })
	}
	b.RMSEps(1e-5)
	b.Rope(s.size)
	b.rmsEnds(s.width, false)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.attention(s, to, from)
		b.headNorms(s.heads*s.size, s.kvHeads*s.size, to, from, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.width, 0)
		b.Norm(to("post_ffw_norm.weight"), from("post_feedforward_layernorm.weight"), s.width, 0)
		b.gated(s, to, from)
	})
}

func starcoder2(b *builder) {
	c := b.Config
	c.Only("hidden_act", "gelu_pytorch_tanh")
	c.Only("norm_type", "layer_norm")
	c.Only("mlp_type", "default")
	s := b.decoder("starcoder2")
	if n := b.Window(); n > 0 {
		b.SetCount(".attention.sliding_window", n)
	}
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("norm_epsilon", 1e-5, 0, 1))
	b.Rope(s.size)
	b.ends("model.", s.width, true, func() { b.LayerNorm("output_norm", "model.norm", s.width) })
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.width)
		b.LayerNorm(to("ffn_norm"), from("post_attention_layernorm"), s.width)
		b.attention(s, to, from)
		b.Both(to("ffn_up"), from("mlp.c_fc"), s.ffn, s.width)
		b.Both(to("ffn_down"), from("mlp.c_proj"), s.width, s.ffn)
	})
}

func gpt2(b *builder) {
	c := b.Config
	c.Only("activation_function", "gelu_new")
	for key, want := range map[string]bool{"scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false} {
		if c.BoolOr(key, want) != want {
			c.Fail("%s must be %v", key, want)
		}
	}
	s := shape{
		layers: c.Count("n_layer", 1, maxLayers), width: c.Count("n_embd", 1, maxWidth),
		heads: c.Count("n_head", 1, maxHeads), context: c.Count(c.First("n_positions", "n_ctx"), 1, maxContext),
	}
	s.ffn, s.kvHeads, s.size = c.CountOr("n_inner", 4*s.width, 1, maxWidth), s.heads, s.width/s.heads
	b.describe("gpt2", s)
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("layer_norm_epsilon", 1e-5, 0, 1))
	root := ""
	if b.Has(folder.GPT2Table) {
		root = "transformer."
	}
	b.Ignored = func(name string) bool { // the mask that older folders keep
		return strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias")
	}
	if t, _ := b.Tensor(root + "wte.weight"); len(t.Shape) == 2 {
		b.Vocab = t.Shape[0]
	}
	b.Copy("token_embd.weight", root+"wte.weight", b.Vocab, s.width)
	b.Copy("position_embd.weight", root+"wpe.weight", s.context, s.width)
	b.LayerNorm("output_norm", root+"ln_f", s.width)
	b.Head("lm_head.weight", s.width, true)
	b.layers(s.layers, root+"h.", func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("ln_1"), s.width)
		b.LayerNorm(to("ffn_norm"), from("ln_2"), s.width)
		linear := func(name, source string, out, in int) {
			b.Transposed(to(name+".weight"), from(source+".weight"), out, in)
			b.Copy(to(name+".bias"), from(source+".bias"), out)
		}
		linear("attn_qkv", "attn.c_attn", 3*s.width, s.width)
		linear("attn_output", "attn.c_proj", s.width, s.width)
		linear("ffn_up", "mlp.c_fc", s.ffn, s.width)
		linear("ffn_down", "mlp.c_proj", s.width, s.ffn)
	})
}

// gptOSS takes the experts in MXFP4, as they are published: rows of gate and up take turns.
func gptOSS(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.decoder("gpt-oss")
	b.RMSEps(1e-5)
	b.Rope(s.size)
	b.windows(s, func(layer int) bool { return layer%2 == 1 })
	experts := b.Experts("num_local_experts")
	b.SetCount(".expert_feed_forward_length", s.ffn)
	b.rmsEnds(s.width, false)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.width, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.width, 0)
		b.attention(s, to, from)
		b.Norm(to("attn_sinks.weight"), from("self_attn.sinks"), s.heads, 0)
		b.Both(to("ffn_gate_inp"), from("mlp.router"), experts, s.width)
		gateUp, down := from("mlp.experts.gate_up_proj"), from("mlp.experts.down_proj")
		for first, name := range []string{"ffn_gate_exps", "ffn_up_exps"} {
			b.MXFP4(to(name+".weight"), gateUp, first, 2, experts, 2*s.ffn, s.width)
			b.EverySecond(to(name+".bias"), gateUp+"_bias", first, experts, s.ffn)
		}
		b.MXFP4(to("ffn_down_exps.weight"), down, 0, 1, experts, s.width, s.ffn)
		b.Copy(to("ffn_down_exps.bias"), down+"_bias", experts, s.width)
	})
}
