package hf

import (
	"math"
	"strconv"

	"grove/weights/gguf"
	"grove/weights/hf/decoder"
	"grove/weights/hf/folder"
)

// senses are the parts of Gemma 3n and 4 and of Llama 4 that see and hear.
var senses = []string{"vision_tower.", "audio_tower.", "multi_modal_projector.", "embed_vision.", "embed_audio.", "vision_model."}

// gemma4 takes the text part.
func gemma4(b *builder) {
	b.GemmaActs()
	c := b.Config
	s := b.ReadShape()
	full := c.CountOr("global_head_dim", s.Size, 1, decoder.MaxHeads)
	local := s.Size
	s.Size = full
	b.DescribeDecoder("gemma4", s)
	b.RMSEps(1e-6)
	if c.BoolOr("attention_bias", false) {
		c.Fail("attention_bias is not supported")
	}
	slides, inner := b.Slides(s.Layers), b.Inner(s.Layers)
	shared := c.CountOr("num_kv_shared_layers", 0, 0, s.Layers-1)
	heads, same := make([]int, s.Layers), c.BoolOr("attention_k_eq_v", false)
	for i := range heads {
		if heads[i] = s.KVHeads; same && !slides[i] {
			heads[i] = c.CountOr("num_global_key_value_heads", s.KVHeads, 1, decoder.MaxHeads)
		}
		if c.BoolOr("use_double_wide_mlp", false) && i >= s.Layers-shared {
			inner[i] *= 2
		}
	}
	b.SetLayers(".feed_forward_length", inner)
	b.SetLayers(".attention.head_count_kv", heads)
	b.SetCount(".attention.shared_kv_layers", shared)
	b.SetCount(".attention.key_length_swa", local)
	b.SetCount(".attention.value_length_swa", local)
	b.SetFloat(".final_logit_softcapping", c.FloatOr("final_logit_softcapping", 0, 0, 1e6))
	b.Gemma4Rope(full, local)
	inputs := c.CountOr("hidden_size_per_layer_input", 0, 0, decoder.MaxWidth)
	b.SetCount(".embedding_length_per_layer_input", inputs)
	experts, ffn := 0, 0
	if c.BoolOr("enable_moe_block", false) {
		experts, ffn = c.Count("num_experts", 1, decoder.MaxExperts), c.Count(c.First("moe_intermediate_size", "expert_intermediate_size"), 1, decoder.MaxWidth)
		b.SetCount(".expert_count", experts)
		b.SetCount(".expert_used_count", c.Count("top_k_experts", 1, experts))
		b.SetCount(".expert_feed_forward_length", ffn)
	}
	prefix := b.TextPrefix(senses...)
	b.Ends(prefix, s.Width, true, func() { b.Norm("output_norm.weight", prefix+"norm.weight", s.Width, 0) })
	if inputs > 0 {
		b.LayerInputs(prefix, s.Layers, s.Width, inputs)
	}
	i := 0
	b.Layers(s.Layers, prefix+"layers.", func(to, from func(string) string) {
		one := s
		if one.FFN, one.KVHeads = inner[i], heads[i]; slides[i] {
			one.Size = local
		}
		i++
		b.UnitLayer(folder.UnitShape{Width: one.Width, Heads: one.Heads, KVHeads: one.KVHeads, Size: one.Size, FFN: one.FFN}, inputs, to, from)
		b.CopyIf(to("layer_output_scale.weight"), from("layer_scalar"), 1)
		if experts > 0 {
			b.Gemma4Experts(s.Width, experts, ffn, to, from)
		}
	})
}

// gemma3n takes the text part.
func gemma3n(b *builder) {
	b.GemmaActs()
	c := b.Config
	inner := b.Inner(c.Count("num_hidden_layers", 1, decoder.MaxLayers))
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
		if got := c.CountOr(key, n, 0, decoder.MaxWidth); got != n {
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
	inputs := c.CountOr("hidden_size_per_layer_input", 256, 1, decoder.MaxWidth)
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
		b.UnitLayer(folder.UnitShape{Width: one.Width, Heads: one.Heads, KVHeads: one.KVHeads, Size: one.Size, FFN: one.FFN}, inputs, to, from)
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
