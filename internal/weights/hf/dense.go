package hf

import (
	"encoding/binary"
	"math"
	"slices"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// smollm3 is Llama without rotation in every fourth layer, which GGUF does not tell.
func smollm3(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	var turns []int
	c.Value("no_rope_layers", &turns, "an array of 0 and 1")
	for i, is := range turns {
		if is != 0 == ((i+1)%4 == 0) {
			c.Fail("no_rope_layers: layer %d has %d; every fourth layer must have 0, the others 1", i, is)
		}
	}
	if turns == nil && c.CountOr("no_rope_layer_interval", 4, 1, MaxLayers) != 4 {
		c.Fail("no_rope_layer_interval must be 4")
	}
	if c.BoolOr("use_sliding_window", false) {
		c.Fail("use_sliding_window is not supported")
	}
	s := b.RMSDecoder("smollm3", 1e-6, true)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.TurnedAttention(s, to, from)
		b.Gated(s, to, from)
	})
}

func arcee(b *builder) {
	b.Config.Only("hidden_act", "relu2")
	s := b.RMSDecoder("arcee", 1e-5, false)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.TurnedAttention(s, to, from)
		b.Plain(s, to, from)
	})
}

// graniteScales adds the factors of Granite.
func (b *builder) graniteScales() {
	for _, scale := range [][2]string{
		{"attention_multiplier", ".attention.scale"}, {"embedding_multiplier", ".embedding_scale"},
		{"residual_multiplier", ".residual_scale"}, {"logits_scaling", ".logit_scale"},
	} {
		if b.Config.Has(scale[0]) {
			b.SetFloat(scale[1], b.Config.FloatOr(scale[0], 1, 1e-6, 1e6))
		}
	}
}

func granite(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.Decoder("granite")
	b.RMSEps(1e-6)
	b.graniteScales()
	b.RMSEnds(s.Width, true)
	b.Rope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.TurnedAttention(s, to, from)
		b.GatedIf(s, to, from)
	})
}

func seedOSS(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.RMSDecoder("seed_oss", 1e-6, false)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 0)
		b.Attention(s, to, from)
		b.Gated(s, to, from)
	})
}

// apertus reads the numbers of its activation, which GGUF has among the hyperparameters.
func apertus(b *builder) {
	b.Config.Only("hidden_act", "xielu")
	s := b.RMSDecoder("apertus", 1e-5, false)
	numbers := map[string][]float32{}
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("attention_layernorm.weight"), s.Width, 0)
		b.Norm(to("ffn_norm.weight"), from("feedforward_layernorm.weight"), s.Width, 0)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.Plain(s, to, from)
		for name, other := range map[string]float32{"alpha_p": 0, "alpha_n": 0, "beta": 0.5, "eps": -1e-6} { // each has a list of its own
			numbers[name] = append(numbers[name], b.number(from("mlp.act_fn."+name), other))
		}
	})
	for _, name := range []string{"alpha_n", "alpha_p", "beta", "eps"} {
		b.SetValue("xielu."+name, gguf.ArrayOf(numbers[name]))
	}
}

// number returns the one value of a tensor; one that is missing is other, and an error where other is 0.
func (b *builder) number(name string, other float32) float32 {
	if !b.Has(name) && other != 0 || !b.OK() {
		return other
	}
	t, _ := b.Tensor(name)
	if t, ok := b.Find(name, t.Shape...); ok && len(t.Data) > 0 {
		var one [4]byte
		if n := ShapeElems(t.Shape); n != 1 {
			b.Fail("%s: %d values; it must have 1", tensor.Label(name), n)
			return other
		}
		ToF32(one[:], t, 0)
		return math.Float32frombits(binary.LittleEndian.Uint32(one[:]))
	}
	return other
}

func olmo(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("olmo")
	b.SetFloat(".attention.layer_norm_epsilon", 1e-5)
	if c.Has("clip_qkv") {
		b.SetFloat(".attention.clamp_kqv", c.FloatOr("clip_qkv", 0, 1e-6, 1e6))
	}
	b.Ends("model.", s.Width, false, func() {}) // norms have no weights
	b.Rope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.TurnedAttention(s, to, from)
		b.Gated(s, to, from)
	})
}

// exaone4 has windows in three of four layers of its largest model alone, which GGUF tells by the number of layers.
func exaone4(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("exaone4")
	const windowed = 64
	switch n := b.Window(); {
	case b.Dry:
	case n == 0 && s.Layers == windowed, n > 0 && s.Layers != windowed:
		c.Fail("sliding_window is %d with %d layers; a model of %d layers has windows, and no other", n, s.Layers, windowed)
	case n > 0:
		b.windows(s, func(layer int) bool { return layer%4 == 3 })
	}
	b.RMSEps(1e-5)
	b.RMSEnds(s.Width, false)
	b.Rope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 0)
		b.Norm(to("post_ffw_norm.weight"), from("post_feedforward_layernorm.weight"), s.Width, 0)
		b.Gated(s, to, from)
	})
}

// ernie keeps the order of rows: its heads rotate by adjacent pairs as they are published.
func ernie(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.RMSDecoder("ernie4_5", 1e-5, true)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.Gated(s, to, from)
	})
}

func hunyuan(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.Decoder("hunyuan-dense")
	b.RMSEps(1e-5)
	b.RMSEnds(s.Width, true)
	b.AlphaRope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.Norm(to("attn_q_norm.weight"), from("self_attn.query_layernorm.weight"), s.Size, 0)
		b.Norm(to("attn_k_norm.weight"), from("self_attn.key_layernorm.weight"), s.Size, 0)
		b.Gated(s, to, from)
	})
}

func glm4(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.Decoder("glm4")
	b.RMSEps(1e-5)
	b.RMSEnds(s.Width, false)
	b.Rope(b.TurnedPart(s, "partial_rotary_factor", 0.5))
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Norm(to("post_attention_norm.weight"), from("post_self_attn_layernorm.weight"), s.Width, 0)
		b.Norm(to("post_ffw_norm.weight"), from("post_mlp_layernorm.weight"), s.Width, 0)
		b.Attention(s, to, from)
		b.Copy(to("ffn_up.weight"), from("mlp.gate_up_proj.weight"), 2*s.FFN, s.Width) // the gate is its first half
		b.Copy(to("ffn_down.weight"), from("mlp.down_proj.weight"), s.Width, s.FFN)
	})
}

// miniCPM adds the scales that the class computes of its settings. It is the class of BlockFFN too.
func miniCPM(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	arch, eps, embed, depth, base := "minicpm", 1e-5, 12.0, 1.4, 256
	blocks := c.TextOr("ffn_type", "vanilla") != "vanilla"
	if blocks { // its class means other values where a folder does not say
		arch, eps, embed, depth, base = "blockffn", 1e-6, 1, 1, 1
	}
	s := b.Decoder(arch)
	b.RMSEps(eps)
	b.SetFloat(".embedding_scale", c.FloatOr("scale_emb", embed, 1e-6, 1e6))
	b.SetFloat(".residual_scale", c.FloatOr("scale_depth", depth, 1e-6, 1e6)/math.Sqrt(float64(s.Layers)))
	b.SetFloat(".logit_scale", float64(s.Width)/float64(c.CountOr("dim_model_base", base, 1, MaxWidth)))
	b.RMSEnds(s.Width, blocks)
	b.Rope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		if blocks {
			b.Attention(s, to, from)
			b.BlockFFN(s.Width, to, from)
			return
		}
		b.TurnedAttention(s, to, from)
		b.Gated(s, to, from)
	})
}

// internLM2 has queries, keys and values in one matrix, by heads of keys: their queries, the key, the value.
func internLM2(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("internlm2")
	b.RMSEps(1e-6)
	b.VocabOf("model.tok_embeddings.weight")
	b.Copy("token_embd.weight", "model.tok_embeddings.weight", b.Vocab, s.Width)
	b.Norm("output_norm.weight", "model.norm.weight", s.Width, 0)
	b.Head("output.weight", s.Width, false)
	b.RopeWithin(s.Size)
	group := max(1, s.Heads/max(1, s.KVHeads))
	fused := func(head, row int) int { return head*s.Size + row }
	turn := func(i int) (head, row int) { return i / s.Size, TurnRow(i%s.Size, s.Size) }
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("attention_norm.weight"), s.Width, 0)
		b.Norm(to("ffn_norm.weight"), from("ffn_norm.weight"), s.Width, 0)
		for _, kind := range []string{".weight", ".bias"} {
			wqkv, rows := from("attention.wqkv"+kind), (s.Heads+2*s.KVHeads)*s.Size
			if kind == ".bias" && !b.Has(wqkv) {
				continue
			}
			b.Gathered(to("attn_q"+kind), wqkv, rows, s.Width, s.Heads*s.Size, func(i int) int {
				h, row := turn(i)
				return fused(h/group*(group+2)+h%group, row)
			})
			b.Gathered(to("attn_k"+kind), wqkv, rows, s.Width, s.KVHeads*s.Size, func(i int) int {
				h, row := turn(i)
				return fused(h*(group+2)+group, row)
			})
			b.Gathered(to("attn_v"+kind), wqkv, rows, s.Width, s.KVHeads*s.Size, func(i int) int {
				return fused(i/s.Size*(group+2)+group+1, i%s.Size)
			})
		}
		b.Both(to("attn_output"), from("attention.wo"), s.Width, s.Heads*s.Size)
		b.Copy(to("ffn_gate.weight"), from("feed_forward.w1.weight"), s.FFN, s.Width)
		b.Copy(to("ffn_up.weight"), from("feed_forward.w3.weight"), s.FFN, s.Width)
		b.Copy(to("ffn_down.weight"), from("feed_forward.w2.weight"), s.Width, s.FFN)
	})
}

// exaone reads EXAONE 3, which has GPT-2's names for Llama's layers.
func exaone(b *builder) {
	c := b.Config
	c.Only("activation_function", "silu")
	for from, to := range map[string]string{"num_layers": "num_hidden_layers", "layer_norm_epsilon": "rms_norm_eps"} {
		if c.Has(from) {
			c.Values[to] = c.Values[from]
		}
	}
	s := b.Decoder("exaone")
	b.RMSEps(1e-5)
	b.VocabOf("transformer.wte.weight")
	b.Copy("token_embd.weight", "transformer.wte.weight", b.Vocab, s.Width)
	b.Norm("output_norm.weight", "transformer.ln_f.weight", s.Width, 0)
	b.Head("lm_head.weight", s.Width, false)
	b.Rope(s.Size)
	b.Layers(s.Layers, "transformer.h.", func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("ln_1.weight"), s.Width, 0)
		b.Norm(to("ffn_norm.weight"), from("ln_2.weight"), s.Width, 0)
		b.Both(to("attn_q"), from("attn.attention.q_proj"), s.Heads*s.Size, s.Width)
		b.Both(to("attn_k"), from("attn.attention.k_proj"), s.KVHeads*s.Size, s.Width)
		b.Both(to("attn_v"), from("attn.attention.v_proj"), s.KVHeads*s.Size, s.Width)
		b.Both(to("attn_output"), from("attn.attention.out_proj"), s.Width, s.Heads*s.Size)
		b.Copy(to("ffn_gate.weight"), from("mlp.c_fc_0.weight"), s.FFN, s.Width)
		b.Copy(to("ffn_up.weight"), from("mlp.c_fc_1.weight"), s.FFN, s.Width)
		b.Copy(to("ffn_down.weight"), from("mlp.c_proj.weight"), s.Width, s.FFN)
	})
}

// ministral reads Ministral 3, Mistral Small 3 with images, whose queries have no temperature, and Mistral Small 4.
func ministral(b *builder) {
	c := b.Config
	if c.TextOr("model_type", "") == "mistral4" {
		Mistral4(b.DecoderBuilder)
		return
	}
	c.Only("hidden_act", "silu")
	s := b.Decoder("mistral3")
	b.RMSEps(1e-5)
	rope, _ := b.RopeConfig()
	if rope.Has("llama_4_scaling_beta") {
		b.SetFloat(".attention.temperature_scale", rope.FloatOr("llama_4_scaling_beta", 0, 0, 10))
	}
	for _, key := range []string{"mscale", "mscale_all_dim"} { // 1: no temperature of attention
		if v := rope.FloatOr(key, 1, 0, 10); v != 1 {
			rope.Fail("%s is %v; it must be 1", key, v)
		}
		delete(rope.Values, key)
	}
	b.RopeOf(rope, s.Size)
	prefix := b.TextPrefix("vision_tower.", "multi_modal_projector.", "visual.")
	b.Ends(prefix, s.Width, false, func() { b.Norm("output_norm.weight", prefix+"norm.weight", s.Width, 0) })
	b.Layers(s.Layers, prefix+"layers.", func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.TurnedAttention(s, to, from)
		b.GatedIf(s, to, from)
	})
}

// qwen3vl reads the text part of Qwen 3-VL.
func qwen3vl(b *builder) {
	b.qwen3vl("qwen3vl", func(s Shape) layerPart {
		return func(to, from func(string) string) { b.Gated(s, to, from) }
	})
}

// qwen3vlMoE reads the text part of Qwen 3-VL's mixtures, whose experts are published as [in, out], the gates before what they gate. Folders that
// newer programs write have them as [out, in].
func qwen3vlMoE(b *builder) {
	c := b.Config
	b.onlyExperts(true)
	if !c.Has("intermediate_size") {
		c.Values["intermediate_size"] = c.Values["moe_intermediate_size"]
	}
	b.qwen3vl("qwen3vlmoe", func(s Shape) layerPart {
		experts, ffn := b.Experts("num_experts"), c.Count("moe_intermediate_size", 1, MaxWidth)
		b.SetCount(".expert_feed_forward_length", ffn)
		return func(to, from func(string) string) {
			gates, down := from("mlp.experts.gate_up_proj"), from("mlp.experts.down_proj")
			if !b.shaped(gates, experts, s.Width, 2*ffn) || !b.shaped(down, experts, ffn, s.Width) {
				b.EitherMixture(s, experts, ffn, to, from)
				return
			}
			b.Copy(to("ffn_gate_inp.weight"), from("mlp.gate.weight"), experts, s.Width)
			b.TurnedStack(to("ffn_gate_exps.weight"), gates, experts, s.Width, 2*ffn, 0, ffn)
			b.TurnedStack(to("ffn_up_exps.weight"), gates, experts, s.Width, 2*ffn, ffn, ffn)
			b.TurnedStack(to("ffn_down_exps.weight"), down, experts, ffn, s.Width, 0, s.Width)
		}
	})
}

// shaped reports whether the folder has a tensor of a shape.
func (b *builder) shaped(name string, shape ...int) bool {
	t, ok := b.Tensor(name)
	return ok && slices.Equal(t.Shape, shape)
}

// layerPart adds the tensors of a part of a layer.
type layerPart func(to, from func(string) string)

// qwen3vl adds what the models of Qwen 3-VL share. feed reads the settings of their feed-forward blocks.
func (b *builder) qwen3vl(arch string, feed func(s Shape) layerPart) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder(arch)
	b.RMSEps(1e-6)
	block := feed(s)
	rope, _ := b.RopeConfig()
	var sections []int32
	if rope.Value("mrope_section", &sections, "an array of numbers") {
		for len(sections) < 4 {
			sections = append(sections, 0)
		}
		b.SetValue(".rope.dimension_sections", gguf.ArrayOf(sections))
	}
	b.RopeOf(rope, s.Size)
	prefix := b.TextPrefix("vision_tower.", "multi_modal_projector.", "visual.")
	b.Ends(prefix, s.Width, true, func() { b.Norm("output_norm.weight", prefix+"norm.weight", s.Width, 0) })
	b.Layers(s.Layers, prefix+"layers.", func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		block(to, from)
	})
}
