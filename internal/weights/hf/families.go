package hf

import (
	"fmt"
	"strings"
)

func llama(b *builder) {
	b.Config.Only("hidden_act", "silu")
	b.WithinWindow()
	s := b.RMSDecoder("llama", 1e-6, false)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.TurnedAttention(s, to, from)
		b.Gated(s, to, from)
	})
}

func mixtral(b *builder) {
	b.Config.Only("hidden_act", "silu")
	b.WithinWindow()
	s := b.Decoder("llama")
	b.RMSEps(1e-5)
	experts := b.Experts("num_local_experts")
	b.RMSEnds(s.Width, false)
	b.Rope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.TurnedAttention(s, to, from)
		b.sparseBlock(s, experts, to, from)
	})
}

func qwen2(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.qwen("qwen2")
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.Gated(s, to, from)
	})
}

// qwen adds what the families of Qwen share.
func (b *builder) qwen(arch string) Shape {
	if b.Config.BoolOr("use_sliding_window", false) {
		b.Config.Fail("use_sliding_window is not supported")
	}
	s := b.RMSDecoder(arch, 1e-6, false)
	return s
}

func qwen3(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.qwen("qwen3")
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.Gated(s, to, from)
	})
}

// onlyExperts refuses layers without experts, and weights of experts that are not divided by their sum; normed is what folders mean that do not say.
func (b *builder) onlyExperts(normed bool) {
	c := b.Config
	var dense []int
	if c.Value("mlp_only_layers", &dense, "an array of layers"); len(dense) > 0 || c.CountOr("decoder_sparse_step", 1, 0, MaxLayers) != 1 {
		c.Fail("layers without experts (mlp_only_layers, decoder_sparse_step) are not supported")
	}
	if !c.BoolOr("norm_topk_prob", normed) {
		c.Fail("norm_topk_prob must be true")
	}
}

func qwen3moe(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	b.onlyExperts(false)
	s := b.qwen("qwen3moe")
	experts := b.Experts(c.First("num_experts", "num_local_experts"))
	ffn := c.Count("moe_intermediate_size", 1, MaxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.Mixture(s, experts, ffn, to, from("mlp.gate.weight"), func(e int, part string) string {
			return from(fmt.Sprintf("mlp.experts.%d.%s.weight", e, part))
		}, "gate_proj", "up_proj", "down_proj")
	})
}

func phi3(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("phi3")
	b.RMSEps(1e-5)
	b.phi3Rope(s, "attention_factor")
	b.SetCount(".attention.sliding_window", b.Window())
	b.RMSEnds(s.Width, false)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Copy(to("attn_qkv.weight"), from("self_attn.qkv_proj.weight"), (s.Heads+2*s.KVHeads)*s.Size, s.Width)
		b.Copy(to("attn_output.weight"), from("self_attn.o_proj.weight"), s.Width, s.Heads*s.Size)
		b.Copy(to("ffn_up.weight"), from("mlp.gate_up_proj.weight"), 2*s.FFN, s.Width) // the gate is its first half
		b.Copy(to("ffn_down.weight"), from("mlp.down_proj.weight"), s.Width, s.FFN)
	})
}

// phi3Rope adds the rotation of Phi 3: of a part of the values of a head, with a list of factors for short
// texts and one for long ones in the variants of longer contexts. strength is the key of the factor on cosine and sine.
func (b *builder) phi3Rope(s Shape, strength string) {
	c, theta := b.RopeConfig()
	part := b.Config.FloatOr("partial_rotary_factor", 1, 0.01, 1)
	dims := int(c.FloatOr("partial_rotary_factor", part, 0.01, 1) * float64(s.Size))
	original := b.Config.CountOr("original_max_position_embeddings", s.Context, 1, MaxContext)
	original = c.CountOr("original_max_position_embeddings", original, 1, MaxContext)
	b.SetCount(".rope.dimension_count", dims)
	b.SetFloat(".rope.freq_base", theta)
	switch kind := c.TextOr(c.First("rope_type", "type"), "default"); kind {
	case "default":
		b.SetCount(".rope.scaling.original_context_length", original)
	case "longrope", "su":
		b.longRope(c, dims, s.Context, original, strength)
	default:
		c.Fail("type is %.40q; it must be default, longrope or su", kind)
	}
}

func olmo2(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.Decoder("olmo2")
	if b.Window() > 0 { // of OLMo 3
		b.windows(s, func(layer int) bool { return layer%4 == 3 })
	}
	b.RMSEps(1e-5)
	b.Rope(s.Size)
	b.RMSEnds(s.Width, false)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Attention(s, to, from)
		b.HeadNorms(s.Heads*s.Size, s.KVHeads*s.Size, to, from, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 0)
		b.Norm(to("post_ffw_norm.weight"), from("post_feedforward_layernorm.weight"), s.Width, 0)
		b.Gated(s, to, from)
	})
}

func starcoder2(b *builder) {
	c := b.Config
	c.Only("hidden_act", "gelu_pytorch_tanh")
	c.Only("norm_type", "layer_norm")
	c.Only("mlp_type", "default")
	s := b.Decoder("starcoder2")
	if n := b.Window(); n > 0 {
		b.SetCount(".attention.sliding_window", n)
	}
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("norm_epsilon", 1e-5, 0, 1))
	b.Rope(s.Size)
	b.Ends("model.", s.Width, true, func() { b.LayerNorm("output_norm", "model.norm", s.Width) })
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.Width)
		b.LayerNorm(to("ffn_norm"), from("post_attention_layernorm"), s.Width)
		b.Attention(s, to, from)
		b.Both(to("ffn_up"), from("mlp.c_fc"), s.FFN, s.Width)
		b.Both(to("ffn_down"), from("mlp.c_proj"), s.Width, s.FFN)
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
	s := Shape{
		Layers: c.Count("n_layer", 1, MaxLayers), Width: c.Count("n_embd", 1, MaxWidth),
		Heads: c.Count("n_head", 1, MaxHeads), Context: c.Count(c.First("n_positions", "n_ctx"), 1, MaxContext),
	}
	s.FFN, s.KVHeads, s.Size = c.CountOr("n_inner", 4*s.Width, 1, MaxWidth), s.Heads, s.Width/s.Heads
	b.DescribeDecoder("gpt2", s)
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("layer_norm_epsilon", 1e-5, 0, 1))
	root := ""
	if b.Has(GPT2Table) {
		root = "transformer."
	}
	b.gpt2Frame(root, s, func(to, from func(string) string) {
		linear := func(name, source string, out, in int) {
			b.Transposed(to(name+".weight"), from(source+".weight"), out, in)
			b.Copy(to(name+".bias"), from(source+".bias"), out)
		}
		linear("attn_qkv", "attn.c_attn", 3*s.Width, s.Width)
		linear("attn_output", "attn.c_proj", s.Width, s.Width)
		linear("ffn_up", "mlp.c_fc", s.FFN, s.Width)
		linear("ffn_down", "mlp.c_proj", s.Width, s.FFN)
	})
}

// gpt2Frame adds what GPT-2 and the models of its line have: tables of tokens and of positions, norms, and the matrices of each layer, which layer adds.
func (b *builder) gpt2Frame(root string, s Shape, layer func(to, from func(string) string)) {
	b.Ignored = func(name string) bool { // the mask that older folders keep
		return strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias")
	}
	b.VocabOf(root + "wte.weight")
	b.Copy("token_embd.weight", root+"wte.weight", b.Vocab, s.Width)
	b.Copy("position_embd.weight", root+"wpe.weight", s.Context, s.Width)
	b.LayerNorm("output_norm", root+"ln_f", s.Width)
	b.Head("lm_head.weight", s.Width, true)
	b.Layers(s.Layers, root+"h.", func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("ln_1"), s.Width)
		b.LayerNorm(to("ffn_norm"), from("ln_2"), s.Width)
		layer(to, from)
	})
}

// gptOSS takes the experts in MXFP4, as they are published: rows of gate and up take turns.
func gptOSS(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("gpt-oss")
	b.RMSEps(1e-5)
	b.Rope(s.Size)
	b.windows(s, func(layer int) bool { return layer%2 == 1 })
	experts := b.Experts("num_local_experts")
	b.SetCount(".expert_feed_forward_length", s.FFN)
	b.RMSEnds(s.Width, false)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 0)
		b.Attention(s, to, from)
		b.Norm(to("attn_sinks.weight"), from("self_attn.sinks"), s.Heads, 0)
		b.Both(to("ffn_gate_inp"), from("mlp.router"), experts, s.Width)
		gateUp, down := from("mlp.experts.gate_up_proj"), from("mlp.experts.down_proj")
		for first, name := range []string{"ffn_gate_exps", "ffn_up_exps"} {
			b.MXFP4(to(name+".weight"), gateUp, first, 2, experts, 2*s.FFN, s.Width)
			b.EverySecond(to(name+".bias"), gateUp+"_bias", first, experts, s.FFN)
		}
		b.MXFP4(to("ffn_down_exps.weight"), down, 0, 1, experts, s.Width, s.FFN)
		b.Copy(to("ffn_down_exps.bias"), down+"_bias", experts, s.Width)
	})
}
