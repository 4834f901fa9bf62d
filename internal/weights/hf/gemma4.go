package hf

import (
	"math"
	"strconv"

	"grove/internal/weights/gguf"
)

// senses are the parts of Gemma 3n and 4 and of Llama 4 that see and hear.
var senses = []string{"vision_tower.", "audio_tower.", "multi_modal_projector.", "embed_vision.", "embed_audio.", "vision_model."}

// gemma4 takes the text part.
func gemma4(b *builder) {
	g := b.readGemma4("gemma4", b.Config.BoolOr("attention_k_eq_v", false), b.Config.BoolOr("enable_moe_block", false))
	b.gemma4Layers(g, b.TextPrefix(senses...), func(to, from func(string) string) {})
}

// gemma4Shape is what Gemma 4 and DiffusionGemma have in each layer. Their layers with a window have heads of local values.
type gemma4Shape struct {
	Shape
	local        int
	slides       []bool
	inner, heads []int // by layer
	inputs       int   // of a layer, of its own; 0: none
	experts, ffn int   // of a mixture; 0: none
}

// readGemma4 reads and adds the settings. Where keys are values too, layers without a window may have another number of heads.
func (b *builder) readGemma4(arch string, same, mixture bool) gemma4Shape {
	b.GemmaActs()
	c := b.Config
	g := gemma4Shape{Shape: b.ReadShape()}
	g.local, g.Size = g.Size, c.CountOr("global_head_dim", g.Size, 1, MaxHeads)
	b.DescribeDecoder(arch, g.Shape)
	b.RMSEps(1e-6)
	if c.BoolOr("attention_bias", false) {
		c.Fail("attention_bias is not supported")
	}
	g.slides, g.inner = b.Slides(g.Layers), b.Inner(g.Layers)
	shared := c.CountOr("num_kv_shared_layers", 0, 0, g.Layers-1)
	g.heads = make([]int, g.Layers)
	for i := range g.heads {
		if g.heads[i] = g.KVHeads; same && !g.slides[i] {
			g.heads[i] = c.CountOr("num_global_key_value_heads", g.KVHeads, 1, MaxHeads)
		}
		if c.BoolOr("use_double_wide_mlp", false) && i >= g.Layers-shared {
			g.inner[i] *= 2
		}
	}
	b.SetLayers(".feed_forward_length", g.inner)
	b.SetLayers(".attention.head_count_kv", g.heads)
	b.SetCount(".attention.shared_kv_layers", shared)
	b.SetCount(".attention.key_length_swa", g.local)
	b.SetCount(".attention.value_length_swa", g.local)
	b.SetFloat(".final_logit_softcapping", c.FloatOr("final_logit_softcapping", 0, 0, 1e6))
	b.Gemma4Rope(g.Size, g.local)
	g.inputs = c.CountOr("hidden_size_per_layer_input", 0, 0, MaxWidth)
	b.SetCount(".embedding_length_per_layer_input", g.inputs)
	if mixture {
		g.experts, g.ffn = c.Count("num_experts", 1, MaxExperts), c.Count(c.First("moe_intermediate_size", "expert_intermediate_size"), 1, MaxWidth)
		b.SetCount(".expert_count", g.experts)
		b.SetCount(".expert_used_count", c.Count("top_k_experts", 1, g.experts))
		b.SetCount(".expert_feed_forward_length", g.ffn)
	}
	return g
}

// gemma4Layers adds the tensors below a prefix, and those that more adds to each layer.
func (b *builder) gemma4Layers(g gemma4Shape, prefix string, more func(to, from func(string) string)) {
	b.Ends(prefix, g.Width, true, func() { b.Norm("output_norm.weight", prefix+"norm.weight", g.Width, 0) })
	if g.inputs > 0 {
		b.LayerInputs(prefix, g.Layers, g.Width, g.inputs)
	}
	i := 0
	b.Layers(g.Layers, prefix+"layers.", func(to, from func(string) string) {
		size := g.Size
		if g.slides[i] {
			size = g.local
		}
		b.UnitLayer(UnitShape{Width: g.Width, Heads: g.Heads, KVHeads: g.heads[i], Size: size, FFN: g.inner[i]}, g.inputs, to, from)
		b.CopyIf(to("layer_output_scale.weight"), from("layer_scalar"), 1)
		if g.experts > 0 {
			b.Gemma4Experts(g.Width, g.experts, g.ffn, to, from)
		}
		more(to, from)
		i++
	})
}

// gemma3n takes the text part.
func gemma3n(b *builder) {
	b.GemmaActs()
	c := b.Config
	inner := b.Inner(c.Count("num_hidden_layers", 1, MaxLayers))
	c.Values["intermediate_size"] = []byte(strconv.Itoa(inner[0]))
	s := b.ReadShape()
	b.DescribeDecoder("gemma3n", s)
	b.RMSEps(1e-6)
	b.SetLayers(".feed_forward_length", inner)
	b.Slides(s.Layers)
	b.SetCount(".attention.shared_kv_layers", c.CountOr("num_kv_shared_layers", 15, 0, s.Layers-1))
	b.Gemma3Rope(s.Size)
	b.SetFloat(".final_logit_softcapping", c.FloatOr("final_logit_softcapping", 30, 0, 1e6))
	const streams, rank = 4, 64
	for key, n := range map[string]int{"altup_num_inputs": streams, "altup_active_idx": 0, "laurel_rank": rank} {
		if got := c.CountOr(key, n, 0, MaxWidth); got != n {
			c.Fail("%s %d is not supported; it must be %d", key, got, n)
		}
	}
	if !c.BoolOr("altup_correct_scale", true) {
		c.Fail("altup_correct_scale false is not supported")
	}
	b.SetCount(".altup.num_inputs", streams)
	b.SetCount(".altup.active_idx", 0)
	quantiles := c.Floats("activation_sparsity_pattern", s.Layers)
	for i, share := range quantiles {
		if share < 0 || share >= 1 {
			c.Fail("activation_sparsity_pattern has %v for layer %d; it must be from 0 to 1", share, i)
		}
		quantiles[i] = float32(math.Sqrt2 * math.Erfinv(2*float64(share)-1))
	}
	b.SetValue(".activation_sparsity_scale", gguf.ArrayOf(quantiles))
	inputs := c.CountOr("hidden_size_per_layer_input", 256, 1, MaxWidth)
	b.SetCount(".embedding_length_per_layer_input", inputs)
	prefix := b.TextPrefix(senses...)
	b.Ends(prefix, s.Width, true, func() { b.Norm("output_norm.weight", prefix+"norm.weight", s.Width, 0) })
	b.LayerInputs(prefix, s.Layers, s.Width, inputs)
	for _, n := range [][2]string{{"altup_proj.weight", "altup_projections."}, {"altup_unembd_proj.weight", "altup_unembed_projections."}} {
		b.Stacked(n[0], func(i int) string { return prefix + n[1] + strconv.Itoa(i) + ".weight" }, streams-1, s.Width, s.Width)
	}
	i := 0
	b.Layers(s.Layers, prefix+"layers.", func(to, from func(string) string) {
		one := s
		one.FFN = inner[i]
		i++
		b.UnitLayer(UnitShape{Width: one.Width, Heads: one.Heads, KVHeads: one.KVHeads, Size: one.Size, FFN: one.FFN}, inputs, to, from)
		b.Norm(to("altup_correct_scale.weight"), from("altup.correct_output_scale"), s.Width, 0)
		b.Norm(to("altup_router_norm.weight"), from("altup.router_norm.weight"), s.Width, 0)
		b.Copy(to("altup_router.weight"), from("altup.modality_router.weight"), streams, s.Width)
		b.Copy(to("altup_predict_coef.weight"), from("altup.prediction_coefs.weight"), streams*streams, streams)
		b.Copy(to("altup_correct_coef.weight"), from("altup.correction_coefs.weight"), streams, streams)
		b.Copy(to("laurel_l.weight"), from("laurel.linear_left.weight"), rank, s.Width)
		b.Copy(to("laurel_r.weight"), from("laurel.linear_right.weight"), s.Width, rank)
		b.Norm(to("laurel_post_norm.weight"), from("laurel.post_laurel_norm.weight"), s.Width, 0)
	})
}
