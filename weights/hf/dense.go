package hf

import (
	"encoding/binary"
	"math"

	"grove/weights/gguf"
	"grove/weights/hf/folder"
	"grove/weights/tensor"
)

// turnedPart returns how many values of a head rotate, where that is a part of them.
func (b *builder) turnedPart(s shape, key string, other float64) int {
	c, _ := b.RopeConfig()
	part := b.Config.FloatOr(key, other, 0.01, 1)
	return int(c.FloatOr(key, part, 0.01, 1) * float64(s.size))
}

// gatedIf adds a gated feed-forward block with the biases that there are.
func (b *builder) gatedIf(s shape, to, from func(string) string) {
	b.Both(to("ffn_gate"), from("mlp.gate_proj"), s.ffn, s.width)
	b.Both(to("ffn_up"), from("mlp.up_proj"), s.ffn, s.width)
	b.Both(to("ffn_down"), from("mlp.down_proj"), s.width, s.ffn)
}

// plain adds a feed-forward block without a gate, with the biases that there are.
func (b *builder) plain(s shape, to, from func(string) string) {
	b.Both(to("ffn_up"), from("mlp.up_proj"), s.ffn, s.width)
	b.Both(to("ffn_down"), from("mlp.down_proj"), s.width, s.ffn)
}

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
	if turns == nil && c.CountOr("no_rope_layer_interval", 4, 1, maxLayers) != 4 {
		c.Fail("no_rope_layer_interval must be 4")
	}
	if c.BoolOr("use_sliding_window", false) {
		c.Fail("use_sliding_window is not supported")
	}
	s := b.rmsDecoder("smollm3", 1e-6, true)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.gated(s, to, from)
	})
}

func arcee(b *builder) {
	b.Config.Only("hidden_act", "relu2")
	s := b.rmsDecoder("arcee", 1e-5, false)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.plain(s, to, from)
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
	s := b.decoder("granite")
	b.RMSEps(1e-6)
	b.graniteScales()
	b.rmsEnds(s.width, true)
	b.Rope(s.size)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.gatedIf(s, to, from)
	})
}

func seedOSS(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.rmsDecoder("seed_oss", 1e-6, false)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.width, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.width, 0)
		b.attention(s, to, from)
		b.gated(s, to, from)
	})
}

// apertus reads the numbers of its activation, which GGUF has among the hyperparameters.
func apertus(b *builder) {
	b.Config.Only("hidden_act", "xielu")
	s := b.rmsDecoder("apertus", 1e-5, false)
	numbers := map[string][]float32{}
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("attention_layernorm.weight"), s.width, 0)
		b.Norm(to("ffn_norm.weight"), from("feedforward_layernorm.weight"), s.width, 0)
		b.attention(s, to, from)
		b.headNorms(s.size, s.size, to, from, 0)
		b.plain(s, to, from)
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
		if n := folder.ShapeElems(t.Shape); n != 1 {
			b.Fail("%s: %d values; it must have 1", tensor.Label(name), n)
			return other
		}
		folder.ToF32(one[:], t, 0)
		return math.Float32frombits(binary.LittleEndian.Uint32(one[:]))
	}
	return other
}

func olmo(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.decoder("olmo")
	b.SetFloat(".attention.layer_norm_epsilon", 1e-5)
	if c.Has("clip_qkv") {
		b.SetFloat(".attention.clamp_kqv", c.FloatOr("clip_qkv", 0, 1e-6, 1e6))
	}
	b.ends("model.", s.width, false, func() {}) // norms have no weights
	b.Rope(s.size)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.turnedAttention(s, to, from)
		b.gated(s, to, from)
	})
}

// exaone4 has windows in three of four layers of its largest model alone, which GGUF tells by the number of layers.
func exaone4(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.decoder("exaone4")
	const windowed = 64
	switch n := b.Window(); {
	case b.Sources != nil:
	case n == 0 && s.layers == windowed, n > 0 && s.layers != windowed:
		c.Fail("sliding_window is %d with %d layers; a model of %d layers has windows, and no other", n, s.layers, windowed)
	case n > 0:
		b.windows(s, func(layer int) bool { return layer%4 == 3 })
	}
	b.RMSEps(1e-5)
	b.rmsEnds(s.width, false)
	b.Rope(s.size)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.attention(s, to, from)
		b.headNorms(s.size, s.size, to, from, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.width, 0)
		b.Norm(to("post_ffw_norm.weight"), from("post_feedforward_layernorm.weight"), s.width, 0)
		b.gated(s, to, from)
	})
}

// ernie keeps the order of rows: its heads rotate by adjacent pairs as they are published.
func ernie(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.rmsDecoder("ernie4_5", 1e-5, true)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.gated(s, to, from)
	})
}

func hunyuan(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.decoder("hunyuan-dense")
	b.RMSEps(1e-5)
	b.rmsEnds(s.width, true)
	b.alphaRope(s)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.Norm(to("attn_q_norm.weight"), from("self_attn.query_layernorm.weight"), s.size, 0)
		b.Norm(to("attn_k_norm.weight"), from("self_attn.key_layernorm.weight"), s.size, 0)
		b.gated(s, to, from)
	})
}

// alphaRope adds the rotation of Hunyuan, whose base grows by a factor alpha for long texts.
func (b *builder) alphaRope(s shape) {
	c, theta := b.RopeConfig()
	if kind := c.TextOr(c.First("rope_type", "type"), "default"); kind != "dynamic" || !c.Has("alpha") {
		b.Rope(s.size)
		return
	}
	if s.size <= 2 {
		b.Fail("head_dim is %d; a rotation with alpha needs more than 2", s.size)
		return
	}
	b.SetCount(".rope.dimension_count", s.size)
	alpha := c.FloatOr("alpha", 1, 1, 1e6)
	b.SetFloat(".rope.freq_base", theta*math.Pow(alpha, float64(s.size)/float64(s.size-2)))
}

func glm4(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.decoder("glm4")
	b.RMSEps(1e-5)
	b.rmsEnds(s.width, false)
	b.Rope(b.turnedPart(s, "partial_rotary_factor", 0.5))
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.Norm(to("post_attention_norm.weight"), from("post_self_attn_layernorm.weight"), s.width, 0)
		b.Norm(to("post_ffw_norm.weight"), from("post_mlp_layernorm.weight"), s.width, 0)
		b.attention(s, to, from)
		b.Copy(to("ffn_up.weight"), from("mlp.gate_up_proj.weight"), 2*s.ffn, s.width) // the gate is its first half
		b.Copy(to("ffn_down.weight"), from("mlp.down_proj.weight"), s.width, s.ffn)
	})
}

// miniCPM adds the scales that the class computes of its settings.
func miniCPM(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.decoder("minicpm")
	b.RMSEps(1e-5)
	b.SetFloat(".embedding_scale", c.FloatOr("scale_emb", 12, 1e-6, 1e6))
	b.SetFloat(".residual_scale", c.FloatOr("scale_depth", 1.4, 1e-6, 1e6)/math.Sqrt(float64(s.layers)))
	b.SetFloat(".logit_scale", float64(s.width)/float64(c.CountOr("dim_model_base", 256, 1, maxWidth)))
	b.rmsEnds(s.width, false)
	b.Rope(s.size)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.gated(s, to, from)
	})
}

// internLM2 has queries, keys and values in one matrix, by heads of keys: their queries, the key, the value.
func internLM2(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.decoder("internlm2")
	b.RMSEps(1e-6)
	b.VocabOf("model.tok_embeddings.weight")
	b.Copy("token_embd.weight", "model.tok_embeddings.weight", b.Vocab, s.width)
	b.Norm("output_norm.weight", "model.norm.weight", s.width, 0)
	b.Head("output.weight", s.width, false)
	b.ropeWithin(s.size)
	group := s.heads / max(1, s.kvHeads)
	fused := func(head, row int) int { return head*s.size + row }
	turn := func(i int) (head, row int) { return i / s.size, TurnRow(i%s.size, s.size) }
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("attention_norm.weight"), s.width, 0)
		b.Norm(to("ffn_norm.weight"), from("ffn_norm.weight"), s.width, 0)
		for _, kind := range []string{".weight", ".bias"} {
			wqkv, rows := from("attention.wqkv"+kind), (s.heads+2*s.kvHeads)*s.size
			if kind == ".bias" && !b.Has(wqkv) {
				continue
			}
			b.Gathered(to("attn_q"+kind), wqkv, rows, s.width, s.heads*s.size, func(i int) int {
				h, row := turn(i)
				return fused(h/group*(group+2)+h%group, row)
			})
			b.Gathered(to("attn_k"+kind), wqkv, rows, s.width, s.kvHeads*s.size, func(i int) int {
				h, row := turn(i)
				return fused(h*(group+2)+group, row)
			})
			b.Gathered(to("attn_v"+kind), wqkv, rows, s.width, s.kvHeads*s.size, func(i int) int {
				return fused(i/s.size*(group+2)+group+1, i%s.size)
			})
		}
		b.Both(to("attn_output"), from("attention.wo"), s.width, s.heads*s.size)
		b.Copy(to("ffn_gate.weight"), from("feed_forward.w1.weight"), s.ffn, s.width)
		b.Copy(to("ffn_up.weight"), from("feed_forward.w3.weight"), s.ffn, s.width)
		b.Copy(to("ffn_down.weight"), from("feed_forward.w2.weight"), s.width, s.ffn)
	})
}

// ropeWithin is rope for a family whose rule dynamic changes the base for texts beyond the context alone, which grove refuses.
func (b *builder) ropeWithin(dims int) {
	c, theta := b.RopeConfig()
	if c.TextOr(c.First("rope_type", "type"), "default") != "dynamic" {
		b.Rope(dims)
		return
	}
	b.SetCount(".rope.dimension_count", dims)
	b.SetFloat(".rope.freq_base", theta)
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
	s := b.decoder("exaone")
	b.RMSEps(1e-5)
	b.VocabOf("transformer.wte.weight")
	b.Copy("token_embd.weight", "transformer.wte.weight", b.Vocab, s.width)
	b.Norm("output_norm.weight", "transformer.ln_f.weight", s.width, 0)
	b.Head("lm_head.weight", s.width, false)
	b.Rope(s.size)
	b.layers(s.layers, "transformer.h.", func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("ln_1.weight"), s.width, 0)
		b.Norm(to("ffn_norm.weight"), from("ln_2.weight"), s.width, 0)
		b.Both(to("attn_q"), from("attn.attention.q_proj"), s.heads*s.size, s.width)
		b.Both(to("attn_k"), from("attn.attention.k_proj"), s.kvHeads*s.size, s.width)
		b.Both(to("attn_v"), from("attn.attention.v_proj"), s.kvHeads*s.size, s.width)
		b.Both(to("attn_output"), from("attn.attention.out_proj"), s.width, s.heads*s.size)
		b.Copy(to("ffn_gate.weight"), from("mlp.c_fc_0.weight"), s.ffn, s.width)
		b.Copy(to("ffn_up.weight"), from("mlp.c_fc_1.weight"), s.ffn, s.width)
		b.Copy(to("ffn_down.weight"), from("mlp.c_proj.weight"), s.width, s.ffn)
	})
}

// ministral reads Ministral 3, Mistral Small 3 with images, whose queries have no temperature, and Mistral Small 4.
func ministral(b *builder) {
	c := b.Config
	if c.TextOr("model_type", "") == "mistral4" {
		mistral4(b)
		return
	}
	c.Only("hidden_act", "silu")
	s := b.decoder("mistral3")
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
	b.RopeOf(rope, s.size)
	prefix := b.TextPrefix("vision_tower.", "multi_modal_projector.", "visual.")
	b.ends(prefix, s.width, false, func() { b.Norm("output_norm.weight", prefix+"norm.weight", s.width, 0) })
	b.layers(s.layers, prefix+"layers.", func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.gatedIf(s, to, from)
	})
}

// qwen3vl reads the text part of Qwen 3-VL.
func qwen3vl(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.decoder("qwen3vl")
	b.RMSEps(1e-6)
	rope, _ := b.RopeConfig()
	var sections []int32
	if rope.Value("mrope_section", &sections, "an array of numbers") {
		for len(sections) < 4 {
			sections = append(sections, 0)
		}
		b.SetValue(".rope.dimension_sections", gguf.ArrayOf(sections))
	}
	b.RopeOf(rope, s.size)
	prefix := b.TextPrefix("vision_tower.", "multi_modal_projector.", "visual.")
	b.ends(prefix, s.width, true, func() { b.Norm("output_norm.weight", prefix+"norm.weight", s.width, 0) })
	b.layers(s.layers, prefix+"layers.", func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.headNorms(s.size, s.size, to, from, 0)
		b.gated(s, to, from)
	})
}
