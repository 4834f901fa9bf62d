package hf

import (
	"strings"

	"grove/weights/hf/folder"
)

// Families whose norms are LayerNorm.

// centeredEps adds the epsilon of LayerNorm.
func (b *builder) centeredEps(key string, other float64) {
	b.SetFloat(".attention.layer_norm_epsilon", b.Config.FloatOr(key, other, 0, 1))
}

// command adds what the families of Command R share: norms without biases, one for both blocks of a layer.
func (b *builder) command(arch string) shape {
	c := b.Config
	c.Only("hidden_act", "silu")
	if c.Has("model_max_length") { // max_position_embeddings of these folders is that of an earlier stage of training
		c.Values["max_position_embeddings"] = c.Values["model_max_length"]
	}
	s := b.decoder(arch)
	b.centeredEps("layer_norm_eps", 1e-5)
	b.SetFloat(".logit_scale", c.FloatOr("logit_scale", 1.0/16, 1e-4, 1e4))
	b.ends("model.", s.width, true, func() { b.Norm("output_norm.weight", "model.norm.weight", s.width, 0) })
	b.Rope(s.size)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.width, 0)
		b.attention(s, to, from)
		b.gated(s, to, from)
		if arch == "command-r" && c.BoolOr("use_qk_norm", false) {
			b.Copy(to("attn_q_norm.weight"), from("self_attn.q_norm.weight"), s.heads, s.size)
			b.Copy(to("attn_k_norm.weight"), from("self_attn.k_norm.weight"), s.kvHeads, s.size)
		}
	})
	return s
}

func commandR(b *builder) { b.command("command-r") }

func cohere2(b *builder) {
	c := b.Config
	if f := c.FloatOr("rotary_pct", 1, 0, 1); f != 1 {
		c.Fail("rotary_pct is %v; it must be 1", f)
	}
	s := b.command("cohere2")
	b.windows(s, func(layer int) bool { return layer%4 == 3 })
}

// nemotron has weights of norms as distances from 1.
func nemotron(b *builder) {
	b.Config.Only("hidden_act", "relu2")
	s := b.decoder("nemotron")
	b.centeredEps("norm_eps", 1e-5)
	norm := func(to, from string) {
		b.Norm(to+".weight", from+".weight", s.width, 1)
		b.Norm(to+".bias", from+".bias", s.width, 0)
	}
	b.ends("model.", s.width, false, func() { norm("output_norm", "model.norm") })
	b.Rope(b.turnedPart(s, "partial_rotary_factor", 0.5))
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		norm(to("attn_norm"), from("input_layernorm"))
		norm(to("ffn_norm"), from("post_attention_layernorm"))
		b.attention(s, to, from)
		b.plain(s, to, from)
	})
}

// stableLM has both blocks of a layer read the same stream in its model of 12B parameters, whose layers then lack the second norm.
func stableLM(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.decoder("stablelm")
	b.centeredEps("layer_norm_eps", 1e-5)
	parallel := c.BoolOr("use_parallel_residual", false)
	folder.Set(b.Builder, ".use_parallel_residual", parallel)
	b.ends("model.", s.width, false, func() { b.LayerNorm("output_norm", "model.norm", s.width) })
	b.Rope(b.turnedPart(s, "partial_rotary_factor", 0.25))
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.width)
		if !parallel {
			b.LayerNorm(to("ffn_norm"), from("post_attention_layernorm"), s.width)
		}
		b.attention(s, to, from)
		if c.BoolOr("qk_layernorm", false) {
			b.StackedNorms(to("attn_q_norm.weight"), from("self_attn.q_layernorm.norms"), s.heads, s.size)
			b.StackedNorms(to("attn_k_norm.weight"), from("self_attn.k_layernorm.norms"), s.kvHeads, s.size)
		}
		b.gated(s, to, from)
	})
}

// phi has both blocks of a layer read the same stream.
func phi(b *builder) {
	c := b.Config
	c.Only("hidden_act", "gelu_new")
	if c.BoolOr("qk_layernorm", false) {
		c.Fail("qk_layernorm is not supported")
	}
	s := b.decoder("phi2")
	b.centeredEps("layer_norm_eps", 1e-5)
	b.ends("model.", s.width, false, func() { b.LayerNorm("output_norm", "model.final_layernorm", s.width) })
	b.Copy("output.bias", "lm_head.bias", b.Vocab)
	b.Rope(b.turnedPart(s, "partial_rotary_factor", 0.5))
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.width)
		b.Both(to("attn_q"), from("self_attn.q_proj"), s.heads*s.size, s.width)
		b.Both(to("attn_k"), from("self_attn.k_proj"), s.kvHeads*s.size, s.width)
		b.Both(to("attn_v"), from("self_attn.v_proj"), s.kvHeads*s.size, s.width)
		b.Both(to("attn_output"), from("self_attn.dense"), s.width, s.heads*s.size)
		b.Both(to("ffn_up"), from("mlp.fc1"), s.ffn, s.width)
		b.Both(to("ffn_down"), from("mlp.fc2"), s.width, s.ffn)
	})
}

// gptNeoX has queries, keys and values in one matrix, head by head.
func gptNeoX(b *builder) {
	c := b.Config
	c.Only("hidden_act", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh")
	s := b.decoder("gptneox")
	b.centeredEps("layer_norm_eps", 1e-5)
	folder.Set(b.Builder, ".use_parallel_residual", c.BoolOr("use_parallel_residual", true))
	b.Ignored = func(name string) bool { // the mask that older folders keep
		return strings.HasSuffix(name, ".attention.bias") || strings.HasSuffix(name, ".attention.masked_bias")
	}
	b.VocabOf("gpt_neox.embed_in.weight")
	b.Copy("token_embd.weight", "gpt_neox.embed_in.weight", b.Vocab, s.width)
	b.LayerNorm("output_norm", "gpt_neox.final_layer_norm", s.width)
	b.Head("embed_out.weight", s.width, false)
	if c.Has("rotary_emb_base") {
		c.Values["rope_theta"] = c.Values["rotary_emb_base"]
	}
	b.Rope(b.turnedPart(s, c.First("rotary_pct", "partial_rotary_factor"), 0.25))
	part := func(i int) int { // of queries, then keys, then values
		kind, at := i/(s.heads*s.size), i%(s.heads*s.size)
		return (at/s.size*3+kind)*s.size + at%s.size
	}
	rows := 3 * s.heads * s.size
	b.layers(s.layers, "gpt_neox.layers.", func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.width)
		b.LayerNorm(to("ffn_norm"), from("post_attention_layernorm"), s.width)
		b.Gathered(to("attn_qkv.weight"), from("attention.query_key_value.weight"), rows, s.width, rows, part)
		b.Gathered(to("attn_qkv.bias"), from("attention.query_key_value.bias"), rows, s.width, rows, part)
		b.Both(to("attn_output"), from("attention.dense"), s.width, s.heads*s.size)
		b.Both(to("ffn_up"), from("mlp.dense_h_to_4h"), s.ffn, s.width)
		b.Both(to("ffn_down"), from("mlp.dense_4h_to_h"), s.width, s.ffn)
	})
}
