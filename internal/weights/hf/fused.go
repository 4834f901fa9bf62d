package hf

import (
	"math"
)

// Families with queries, keys and values in one matrix, and those that are other families with a few settings more.

// alias gives settings that a family names in another way the names that most have.
func (b *builder) alias(names ...[2]string) {
	for _, n := range names {
		if c := b.Config; !c.Has(n[1]) && c.Has(n[0]) {
			c.Values[n[1]] = c.Values[n[0]]
		}
	}
}

// must refuses truth values that are not those which a family needs; a missing one is other.
func (b *builder) must(key string, want, other bool) {
	if got := b.Config.BoolOr(key, other); got != want {
		b.Config.Fail("%s is %v; it must be %v", key, got, want)
	}
}

// falcon reads Falcon 1 and 2: the folder has, for each head of keys, its queries, the key and the value.
func falcon(b *builder) {
	c := b.Config
	c.Only("activation", "gelu")
	b.must("alibi", false, false)
	b.must("bias", false, false)
	b.must("apply_residual_connection_post_layernorm", false, false)
	newer := c.BoolOr("new_decoder_architecture", false)
	if !newer {
		b.must("parallel_attn", true, true)
	}
	b.alias([2]string{"n_layer", "num_hidden_layers"}, [2]string{"n_head", "num_attention_heads"}, [2]string{"n_head_kv", "num_kv_heads"})
	s := Shape{
		Layers: c.Count("num_hidden_layers", 1, MaxLayers), Width: c.Count("hidden_size", 1, MaxWidth),
		Heads: c.Count("num_attention_heads", 1, MaxHeads), Context: c.CountOr("max_position_embeddings", 2048, 1, MaxContext),
	}
	s.FFN, s.KVHeads, s.Size = c.CountOr("ffn_hidden_size", 4*s.Width, 1, MaxWidth), s.Heads, c.CountOr("head_dim", s.Width/s.Heads, 1, MaxHeads)
	switch {
	case newer:
		s.KVHeads = c.CountOr("num_kv_heads", s.Heads, 1, MaxHeads)
	case c.BoolOr("multi_query", true):
		s.KVHeads = 1
	}
	if s.Heads%s.KVHeads != 0 {
		c.Fail("num_kv_heads is %d; it must divide num_attention_heads (%d)", s.KVHeads, s.Heads)
		return
	}
	b.DescribeDecoder("falcon", s)
	b.CenteredEps("layer_norm_epsilon", 1e-5)
	b.Rope(s.Size)
	b.VocabOf("transformer.word_embeddings.weight")
	b.Copy("token_embd.weight", "transformer.word_embeddings.weight", b.Vocab, s.Width)
	b.LayerNorm("output_norm", "transformer.ln_f", s.Width)
	b.Head("lm_head.weight", s.Width, true)
	group, rows := s.Heads/s.KVHeads, (s.Heads+2*s.KVHeads)*s.Size
	place := func(i int) int { // in the folder, of a row of the queries, then the keys, then the values
		h, row := i/s.Size, i%s.Size
		switch {
		case h < s.Heads:
			h = h/group*(group+2) + h%group
		case h < s.Heads+s.KVHeads:
			h = (h-s.Heads)*(group+2) + group
		default:
			h = (h-s.Heads-s.KVHeads)*(group+2) + group + 1
		}
		return h*s.Size + row
	}
	two := newer && c.CountOr("num_ln_in_parallel_attn", 2, 1, 2) == 2
	b.Layers(s.Layers, "transformer.h.", func(to, from func(string) string) {
		if two {
			b.LayerNorm(to("attn_norm"), from("ln_mlp"), s.Width)
			b.LayerNorm(to("attn_norm_2"), from("ln_attn"), s.Width)
		} else {
			b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.Width)
		}
		b.Gathered(to("attn_qkv.weight"), from("self_attention.query_key_value.weight"), rows, s.Width, rows, place)
		b.Copy(to("attn_output.weight"), from("self_attention.dense.weight"), s.Width, s.Heads*s.Size)
		b.Copy(to("ffn_up.weight"), from("mlp.dense_h_to_4h.weight"), s.FFN, s.Width)
		b.Copy(to("ffn_down.weight"), from("mlp.dense_4h_to_h.weight"), s.Width, s.FFN)
	})
}

// gptBigCode reads StarCoder 1: GPT-2 whose heads share one of keys and values, with matrices as most families have them.
func gptBigCode(b *builder) {
	c := b.Config
	c.Only("activation_function", "gelu_pytorch_tanh")
	b.must("multi_query", true, true)
	b.must("scale_attn_weights", true, true)
	s := Shape{
		Layers: c.Count("n_layer", 1, MaxLayers), Width: c.Count("n_embd", 1, MaxWidth),
		Heads: c.Count("n_head", 1, MaxHeads), KVHeads: 1, Context: c.Count("n_positions", 1, MaxContext),
	}
	s.FFN, s.Size = c.CountOr("n_inner", 4*s.Width, 1, MaxWidth), max(1, s.Width/s.Heads)
	b.DescribeDecoder("starcoder", s)
	b.CenteredEps("layer_norm_epsilon", 1e-5)
	b.gpt2Frame("transformer.", s, func(to, from func(string) string) {
		b.Both(to("attn_qkv"), from("attn.c_attn"), (s.Heads+2)*s.Size, s.Width)
		b.Both(to("attn_output"), from("attn.c_proj"), s.Width, s.Heads*s.Size)
		b.Both(to("ffn_up"), from("mlp.c_fc"), s.FFN, s.Width)
		b.Both(to("ffn_down"), from("mlp.c_proj"), s.Width, s.FFN)
	})
}

// miniCPM3 has latent attention in the form that is published, and scales that GGUF cannot tell.
func miniCPM3(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	for key, want := range map[string]float64{"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256} {
		if got := c.FloatOr(key, want, 0, 1e6); got != want {
			c.Fail("%s is %v; it must be %v", key, got, want)
		}
	}
	s := b.ReadShape()
	plain, turned := c.Count("qk_nope_head_dim", 0, MaxHeads), c.Count("qk_rope_head_dim", 2, MaxHeads)
	rank, query := c.Count("kv_lora_rank", 1, MaxWidth), c.Count("q_lora_rank", 1, MaxWidth)
	s.Value = c.CountOr("v_head_dim", max(1, s.Width/s.Heads), 1, MaxHeads)
	s.Size = plain + turned
	b.DescribeDecoder("minicpm3", s)
	b.RMSEps(1e-5)
	b.SetCount(".attention.q_lora_rank", query)
	b.SetCount(".attention.kv_lora_rank", rank)
	rope, theta := b.RopeConfig()
	if kind := rope.TextOr(rope.First("rope_type", "type"), "default"); kind == "longrope" {
		b.SetCount(".rope.dimension_count", turned)
		b.SetFloat(".rope.freq_base", theta)
		b.longRope(rope, turned, s.Context, rope.CountOr("original_max_position_embeddings", s.Context, 1, MaxContext), "attention_factor")
	} else {
		b.RopeOf(rope, turned)
	}
	b.RMSEnds(s.Width, true)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Both(to("attn_q_a"), from("self_attn.q_a_proj"), query, s.Width)
		b.Norm(to("attn_q_a_norm.weight"), from("self_attn.q_a_layernorm.weight"), query, 0)
		b.Copy(to("attn_q_b.weight"), from("self_attn.q_b_proj.weight"), s.Heads*s.Size, query)
		b.Both(to("attn_kv_a_mqa"), from("self_attn.kv_a_proj_with_mqa"), rank+turned, s.Width)
		b.Norm(to("attn_kv_a_norm.weight"), from("self_attn.kv_a_layernorm.weight"), rank, 0)
		b.Copy(to("attn_kv_b.weight"), from("self_attn.kv_b_proj.weight"), s.Heads*(plain+s.Value), rank)
		b.Both(to("attn_output"), from("self_attn.o_proj"), s.Width, s.Heads*s.Value)
		b.Gated(s, to, from)
	})
}

// longRope adds lists of factors for texts beyond the original context and within it, and the factor of attention.
func (b *builder) longRope(c *FolderConfig, dims, context, original int, strength string) {
	b.SetCount(".rope.scaling.original_context_length", original)
	attention := 1.0
	if scale := float64(context) / float64(original); scale > 1 && original > 1 {
		attention = math.Sqrt(1 + math.Log(scale)/math.Log(float64(original)))
	}
	b.SetFloat(".rope.scaling.attn_factor", c.FloatOr(strength, attention, 1e-3, 1e3))
	long, short := c.Floats("long_factor", dims/2), c.Floats("short_factor", dims/2)
	if b.OK() {
		b.AddFloats("rope_factors_long.weight", long)
		b.AddFloats("rope_factors_short.weight", short)
	}
}

// bamba is Mamba 2 with a few layers that attend, of which half of each head rotates.
func bamba(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("granitehybrid")
	b.RMSEps(1e-5)
	dims := c.CountOr("attn_rotary_emb", b.TurnedPart(s, "partial_rotary_factor", 0.5), 2, s.Size)
	if half := b.TurnedPart(s, "partial_rotary_factor", 0.5); dims != half {
		c.Fail("attn_rotary_emb is %d; %d values of a head rotate", dims, half)
	}
	b.Rope(dims)
	r := b.Mamba2Settings(c.CountOr("mamba_expand", 2, 1, MaxWidth)*s.Width,
		map[string]string{"taps": "mamba_d_conv", "state": "mamba_d_state", "heads": "mamba_n_heads", "groups": "mamba_n_groups", "size": "mamba_d_head"})
	r.Describe(b.DecoderBuilder.FolderBuilder)
	FolderSet(b.DecoderBuilder.FolderBuilder, ".rope.scaling.finetuned", true) // it rotates
	var attends []int
	c.Value("attn_layer_indices", &attends, "an array of layers")
	kvHeads := make([]int, s.Layers)
	for _, l := range attends {
		if l < 0 || l >= s.Layers {
			c.Fail("attn_layer_indices names layer %d of %d", l, s.Layers)
			return
		}
		kvHeads[l] = s.KVHeads
	}
	b.Ends("model.", s.Width, false, func() { b.Norm("output_norm.weight", "model.final_layernorm.weight", s.Width, 0) })
	layer := -1
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		layer++
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 0)
		b.Norm(to("ffn_norm.weight"), from("pre_ff_layernorm.weight"), s.Width, 0)
		if kvHeads[layer] > 0 {
			b.partlyTurned(s, dims, to, from)
		} else {
			b.Mamba2(r, s.Width, to, from("mamba."), nil, 1)
		}
		b.feedForward(s, s.FFN, to, from)
	})
	b.SetLayers(".attention.head_count_kv", kvHeads)
}

// partlyTurned adds the projections of heads of which the first dims values rotate: by halves in the folder, in pairs in GGUF.
func (b *builder) partlyTurned(s Shape, dims int, to, from func(string) string) {
	row := func(i int) int {
		if i%s.Size >= dims {
			return i
		}
		return i - i%s.Size + FolderTurnRow(i%s.Size, dims)
	}
	turned := func(to, from string, rows int) {
		b.Gathered(to+".weight", from+".weight", rows, s.Width, rows, row)
		if b.Has(from + ".bias") {
			b.Gathered(to+".bias", from+".bias", rows, s.Width, rows, row)
		}
	}
	turned(to("attn_q"), from("self_attn.q_proj"), s.Heads*s.Size)
	turned(to("attn_k"), from("self_attn.k_proj"), s.KVHeads*s.Size)
	b.Both(to("attn_v"), from("self_attn.v_proj"), s.KVHeads*s.Size, s.Width)
	b.Both(to("attn_output"), from("self_attn.o_proj"), s.Width, s.Heads*s.Size)
}

// falconMamba is Mamba that norms the inputs of the steps, B and C, without weights.
func falconMamba(b *builder) {
	b.mamba(b.Config.FloatOr("mixer_rms_eps", 1e-6, 1e-30, 1))
}
