package hf

import (
	"strings"
)

// Families whose norms are LayerNorm.

// command adds what the families of Command R share: norms without biases, one for both blocks of a layer.
func (b *builder) command(arch string) Shape {
	c := b.Config
	c.Only("hidden_act", "silu")
	if c.Has("model_max_length") { // max_position_embeddings of these folders is that of an earlier stage of training
		c.Values["max_position_embeddings"] = c.Values["model_max_length"]
	}
	s := b.Decoder(arch)
	b.CenteredEps("layer_norm_eps", 1e-5)
	b.SetFloat(".logit_scale", c.FloatOr("logit_scale", 1.0/16, 1e-4, 1e4))
	b.Ends("model.", s.Width, true, func() { b.Norm("output_norm.weight", "model.norm.weight", s.Width, 0) })
	b.Rope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 0)
		b.Attention(s, to, from)
		b.Gated(s, to, from)
		if arch == "command-r" && c.BoolOr("use_qk_norm", false) {
			b.Copy(to("attn_q_norm.weight"), from("self_attn.q_norm.weight"), s.Heads, s.Size)
			b.Copy(to("attn_k_norm.weight"), from("self_attn.k_norm.weight"), s.KVHeads, s.Size)
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
	s := b.Decoder("nemotron")
	b.CenteredEps("norm_eps", 1e-5)
	norm := func(to, from string) {
		b.Norm(to+".weight", from+".weight", s.Width, 1)
		b.Norm(to+".bias", from+".bias", s.Width, 0)
	}
	b.Ends("model.", s.Width, false, func() { norm("output_norm", "model.norm") })
	b.Rope(b.TurnedPart(s, "partial_rotary_factor", 0.5))
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		norm(to("attn_norm"), from("input_layernorm"))
		norm(to("ffn_norm"), from("post_attention_layernorm"))
		b.Attention(s, to, from)
		b.Plain(s, to, from)
	})
}

// stableLM has both blocks of a layer read the same stream in its model of 12B parameters, whose layers then lack the second norm.
func stableLM(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("stablelm")
	b.CenteredEps("layer_norm_eps", 1e-5)
	parallel := c.BoolOr("use_parallel_residual", false)
	FolderSet(b.DecoderBuilder.FolderBuilder, ".use_parallel_residual", parallel)
	b.Ends("model.", s.Width, false, func() { b.LayerNorm("output_norm", "model.norm", s.Width) })
	b.Rope(b.TurnedPart(s, "partial_rotary_factor", 0.25))
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.Width)
		if !parallel {
			b.LayerNorm(to("ffn_norm"), from("post_attention_layernorm"), s.Width)
		}
		b.Attention(s, to, from)
		if c.BoolOr("qk_layernorm", false) {
			b.StackedNorms(to("attn_q_norm.weight"), from("self_attn.q_layernorm.norms"), s.Heads, s.Size)
			b.StackedNorms(to("attn_k_norm.weight"), from("self_attn.k_layernorm.norms"), s.KVHeads, s.Size)
		}
		b.Gated(s, to, from)
	})
}

// phi has both blocks of a layer read the same stream.
func phi(b *builder) {
	c := b.Config
	c.Only("hidden_act", "gelu_new")
	if c.BoolOr("qk_layernorm", false) {
		c.Fail("qk_layernorm is not supported")
	}
	s := b.Decoder("phi2")
	b.CenteredEps("layer_norm_eps", 1e-5)
	b.Ends("model.", s.Width, false, func() { b.LayerNorm("output_norm", "model.final_layernorm", s.Width) })
	b.Copy("output.bias", "lm_head.bias", b.Vocab)
	b.Rope(b.TurnedPart(s, "partial_rotary_factor", 0.5))
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.Width)
		b.Both(to("attn_q"), from("self_attn.q_proj"), s.Heads*s.Size, s.Width)
		b.Both(to("attn_k"), from("self_attn.k_proj"), s.KVHeads*s.Size, s.Width)
		b.Both(to("attn_v"), from("self_attn.v_proj"), s.KVHeads*s.Size, s.Width)
		b.Both(to("attn_output"), from("self_attn.dense"), s.Width, s.Heads*s.Size)
		b.Both(to("ffn_up"), from("mlp.fc1"), s.FFN, s.Width)
		b.Both(to("ffn_down"), from("mlp.fc2"), s.Width, s.FFN)
	})
}

// gptNeoX has queries, keys and values in one matrix, head by head.
func gptNeoX(b *builder) {
	c := b.Config
	c.Only("hidden_act", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh")
	s := b.Decoder("gptneox")
	b.CenteredEps("layer_norm_eps", 1e-5)
	FolderSet(b.DecoderBuilder.FolderBuilder, ".use_parallel_residual", c.BoolOr("use_parallel_residual", true))
	b.Ignored = func(name string) bool { // the mask that older folders keep
		return strings.HasSuffix(name, ".attention.bias") || strings.HasSuffix(name, ".attention.masked_bias")
	}
	b.VocabOf("gpt_neox.embed_in.weight")
	b.Copy("token_embd.weight", "gpt_neox.embed_in.weight", b.Vocab, s.Width)
	b.LayerNorm("output_norm", "gpt_neox.final_layer_norm", s.Width)
	b.Head("embed_out.weight", s.Width, false)
	if c.Has("rotary_emb_base") {
		c.Values["rope_theta"] = c.Values["rotary_emb_base"]
	}
	b.Rope(b.TurnedPart(s, c.First("rotary_pct", "partial_rotary_factor"), 0.25))
	part := func(i int) int { // of queries, then keys, then values
		kind, at := i/(s.Heads*s.Size), i%(s.Heads*s.Size)
		return (at/s.Size*3+kind)*s.Size + at%s.Size
	}
	rows := 3 * s.Heads * s.Size
	b.Layers(s.Layers, "gpt_neox.layers.", func(to, from func(string) string) {
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.Width)
		b.LayerNorm(to("ffn_norm"), from("post_attention_layernorm"), s.Width)
		b.Gathered(to("attn_qkv.weight"), from("attention.query_key_value.weight"), rows, s.Width, rows, part)
		b.Gathered(to("attn_qkv.bias"), from("attention.query_key_value.bias"), rows, s.Width, rows, part)
		b.Both(to("attn_output"), from("attention.dense"), s.Width, s.Heads*s.Size)
		b.Both(to("ffn_up"), from("mlp.dense_h_to_4h"), s.FFN, s.Width)
		b.Both(to("ffn_down"), from("mlp.dense_4h_to_h"), s.Width, s.FFN)
	})
}
