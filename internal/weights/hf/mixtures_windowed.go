package hf

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
)

// Families with sliding windows in most layers.

// window adds the sliding window and the layers that have it.
func (b *mixturesBuilder) window(key string, slides []bool) {
	b.SetCount(".attention.sliding_window", b.Config.Count(key, 1, MaxContext))
	b.SetValue(".attention.sliding_window_pattern", gguf.ArrayOf(slides))
}

// kinds reads layer_types for n layers; the list may go on.
func (b *mixturesBuilder) kinds(n int) []bool {
	c, slides := b.Config, make([]bool, n)
	var kinds []string
	if !c.Value("layer_types", &kinds, "an array of kinds") || len(kinds) < n {
		c.Fail("layer_types has %d entries, there are %d layers", len(kinds), n)
		return slides
	}
	for i := range slides {
		if slides[i] = kinds[i] == "sliding_attention"; !slides[i] && kinds[i] != "full_attention" {
			c.Fail("layer_types has %.40q for layer %d; it must be sliding_attention or full_attention", kinds[i], i)
		}
	}
	return slides
}

// step35 reads Step 3.5, with the layers that predict further tokens, which stand behind the model's own. Its norms multiply by one more than their
// weights.
func step35(b *mixturesBuilder) {
	c := b.Config
	b.renamed("max_seq_len", "max_position_embeddings")
	b.renamed("num_attention_groups", "num_key_value_heads")
	b.renamed("moe_top_k", "num_experts_per_tok")
	b.step35Settings()
	s := b.ReadShape()
	own, further := s.Layers, c.CountOr("num_nextn_predict_layers", 0, 0, 8)
	if !b.Has(fmt.Sprintf("%s%d.eh_proj.weight", LayerRoot, own)) {
		further = 0
	}
	s.Layers += further
	slides := b.kinds(s.Layers)
	other := c.Sub("attention_other_setting")
	local := s // of layers with a window
	local.Heads, local.KVHeads = other.CountOr("num_attention_heads", s.Heads, 1, MaxHeads), other.CountOr("num_attention_groups", s.KVHeads, 1, MaxHeads)
	if n := other.CountOr("head_dim", s.Size, 1, MaxHeads); n != s.Size {
		other.Fail("head_dim is %d; it must be that of the other layers (%d)", n, s.Size)
	}
	b.DescribeDecoder("step35", s)
	b.RMSEps(1e-5)
	b.window("sliding_window", slides)
	b.step35Rope(s, slides)
	experts, ffn, shared := b.Experts("moe_num_experts"), c.Count("moe_intermediate_size", 1, MaxWidth), c.Count("share_expert_dim", 1, MaxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.SetCount(".expert_shared_feed_forward_length", shared)
	b.SetFloat(".expert_weights_scale", c.FloatOr("moe_router_scaling_factor", 1, 0, 1e4))
	FolderSet(b.DecoderBuilder.FolderBuilder, ".expert_weights_norm", c.BoolOr("norm_expert_weight", true))
	const sigmoid = 2
	b.SetCount(".expert_gating_func", sigmoid)
	b.step35Limits(s.Layers, "swiglu_limits", ".swiglu_clamp_exp")
	b.step35Limits(s.Layers, "swiglu_limits_shared", ".swiglu_clamp_shexp")
	if further > 0 {
		b.SetCount(".nextn_predict_layers", further)
	}
	routes := b.step3Layers()
	b.Ends("model.", s.Width, false, func() { b.Norm("output_norm.weight", "model.norm.weight", s.Width, 1) })
	heads, kvHeads := make([]int, s.Layers), make([]int, s.Layers)
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		one := s
		if slides[i] {
			one = local
		}
		heads[i], kvHeads[i] = one.Heads, one.KVHeads
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 1)
		b.Norm(to("ffn_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 1)
		b.Attention(one, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 1)
		b.Copy(to("attn_gate.weight"), from("self_attn.g_proj.weight"), one.Heads, s.Width)
		if slices.Contains(routes, i) {
			b.step3Experts(s, experts, ffn, to, from)
			b.Norm(to("exp_probs_b.bias"), from("moe.router_bias"), experts, 0)
			b.SharedExpert(s, shared, to, from("share_expert."))
		} else {
			b.Gated(s, to, from)
		}
		if i >= own {
			b.predictorOf(s, 1, "transformer.shared_head.output.weight", "transformer.shared_head.norm.weight", to, from)
		}
	})
	b.SetLayers(".attention.head_count", heads)
	b.SetLayers(".attention.head_count_kv", kvHeads)
}

// renamed gives a setting the name that most families have.
func (b *mixturesBuilder) renamed(from, to string) {
	if c := b.Config; c.Has(from) && !c.Has(to) {
		c.Values[to] = c.Values[from]
	}
}

// step35Settings refuses settings without which a model is another one.
func (b *mixturesBuilder) step35Settings() {
	c := b.Config
	for _, key := range []string{"use_head_wise_attn_gate", "use_moe_router_bias", "use_qk_norm", "zero_centered"} {
		if !c.BoolOr(key, true) {
			c.Fail("%s is false; it must be true", key)
		}
	}
	for _, key := range []string{"attention_bias", "sink"} {
		if c.BoolOr(key, false) {
			c.Fail("%s is true; it must be false", key)
		}
	}
	c.Only("moe_router_activation", "sigmoid")
	c.Only("att_impl_type", "GQA")
	c.Only("hidden_act", "silu")
	if n := c.CountOr("moe_every_n_layer", 1, 0, MaxLayers); n != 1 {
		c.Fail("moe_every_n_layer is %d; it must be 1", n)
	}
	c.Sub("attention_other_setting").Only("attention_type", "sliding_attention")
}

// step35Rope adds the two rotations: of half of each head in layers without a window, which a rule for longer contexts may change, and of whole
// heads. The bases may be one for each layer.
func (b *mixturesBuilder) step35Rope(s Shape, slides []bool) {
	c := b.Config
	var bases, parts []float64
	if text := c.Values["rope_theta"]; len(text) > 0 && text[0] == '[' {
		c.Value("rope_theta", &bases, "a number, or an array of numbers")
	} else {
		bases = slices.Repeat([]float64{c.FloatOr("rope_theta", 10000, 1, math.MaxFloat32)}, s.Layers)
	}
	c.Value("partial_rotary_factors", &parts, "an array of numbers")
	full, local := 10000.0, 0.0
	for i, is := range slides {
		base, part := &full, 0.5
		if is {
			base, part = &local, 1
		}
		if i < len(bases) {
			*base = bases[i]
		}
		if i < len(parts) && parts[i] != part {
			c.Fail("partial_rotary_factors has %v for layer %d; it must be %v", parts[i], i, part)
		}
	}
	for i, is := range slides {
		if want := map[bool]float64{true: local, false: full}[is]; i < len(bases) && (bases[i] != want || !(want >= 1 && want <= math.MaxFloat32)) {
			c.Fail("rope_theta has %v for layer %d; layers of a kind must have one, from 1 on", bases[i], i)
		}
	}
	if local == 0 {
		local = full
	}
	b.SetCount(".rope.dimension_count", s.Size)
	b.SetFloat(".rope.freq_base", full)
	b.SetFloat(".rope.freq_base_swa", local)
	rope := c.Sub(c.First("rope_parameters", "rope_scaling"))
	switch kind := rope.TextOr(rope.First("rope_type", "type"), "default"); kind {
	case "default":
	case "llama3":
		factors := b.Llama3Factors(rope, full, s.Size/2)
		for len(factors) < s.Size/2 {
			factors = append(factors, 1)
		}
		var only []string
		if c.Value("yarn_only_types", &only, "an array of kinds") && !slices.Equal(only, []string{"full_attention"}) {
			c.Fail("yarn_only_types is %.80v; it must be full_attention", only)
		}
		b.AddFloats("rope_freqs.weight", factors)
	default:
		rope.Fail("type is %.40q; it must be default or llama3", kind)
	}
}

// step35Limits adds the limits of a gate in each layer; null, and what the list lacks, is none.
func (b *mixturesBuilder) step35Limits(layers int, key, to string) {
	var all []*float32
	if !b.Config.Value(key, &all, "an array of numbers") {
		return
	}
	limits := make([]float32, layers)
	for i := range min(layers, len(all)) {
		if all[i] != nil {
			limits[i] = *all[i]
		}
		if limits[i] < 0 {
			b.Config.Fail("%s has %v for layer %d; it must be 0 or more", key, limits[i], i)
		}
	}
	b.SetValue(to, gguf.ArrayOf(limits))
}

// mimo2 reads MiMo-V2-Flash, with the layers that predict further tokens, which have windows and stand behind the model's own.
func mimo2(b *mixturesBuilder) {
	c := b.Config
	b.mimo2Settings()
	s := b.ReadShape()
	own, further := s.Layers, 0
	const mtp = "model.mtp.layers."
	for further < 8 && b.Has(fmt.Sprintf("%s%d.eh_proj.weight", mtp, further)) {
		further++
	}
	s.Layers += further
	s.Value = c.CountOr("v_head_dim", s.Size, 1, MaxHeads)
	var pattern, routes []int
	c.Value("hybrid_layer_pattern", &pattern, "an array of 0 and 1")
	c.Value("moe_layer_freq", &routes, "an array of 0 and 1")
	if len(pattern) != own || len(routes) != own {
		c.Fail("hybrid_layer_pattern has %d entries and moe_layer_freq %d, there are %d layers", len(pattern), len(routes), own)
		return
	}
	slides, kvHeads := make([]bool, s.Layers), make([]int, s.Layers)
	for i := range slides {
		if slides[i] = i >= own || pattern[i] != 0; slides[i] {
			kvHeads[i] = c.CountOr("swa_num_key_value_heads", s.KVHeads, 1, MaxHeads)
		} else {
			kvHeads[i] = s.KVHeads
		}
	}
	b.DescribeDecoder("mimo2", s)
	b.SetFloat(".attention.layer_norm_rms_epsilon", c.FloatOr(c.First("layernorm_epsilon", "rms_norm_eps"), 1e-5, 0, 1))
	b.window(c.First("sliding_window", "sliding_window_size"), slides)
	b.Rope(b.TurnedPart(s, "partial_rotary_factor", 1))
	_, theta := b.RopeConfig()
	b.SetFloat(".rope.freq_base_swa", c.FloatOr("swa_rope_theta", theta, 1, math.MaxFloat32))
	b.SetFloat(".attention.value_scale", c.FloatOr("attention_value_scale", 0, 0, 1e4))
	experts, ffn := b.Experts("n_routed_experts"), c.Count("moe_intermediate_size", 1, MaxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.SetFloat(".expert_weights_scale", c.FloatOr("routed_scaling_factor", 1, 0, 1e4))
	FolderSet(b.DecoderBuilder.FolderBuilder, ".expert_weights_norm", true)
	b.gating("sigmoid")
	if further > 0 {
		b.SetCount(".nextn_predict_layers", further)
	}
	b.RMSEnds(s.Width, false)
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		if i >= own {
			from = func(name string) string { return fmt.Sprintf("%s%d.%s", mtp, i-own, name) }
		}
		b.mimo2Attention(s, kvHeads[i], to, from)
		switch {
		case i < own && routes[i] != 0:
			b.Norm(to("ffn_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 0)
			b.EitherMixture(s, experts, ffn, to, from)
			b.Norm(to("exp_probs_b.bias"), from(correction), experts, 0)
			return
		case b.Has(from("pre_mlp_layernorm.weight")):
			b.Norm(to("ffn_norm.weight"), from("pre_mlp_layernorm.weight"), s.Width, 0)
		default:
			b.Norm(to("ffn_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 0)
		}
		b.Gated(s, to, from)
		if i >= own {
			b.joins(s, 0, to, from)
			b.Norm(to("layer_output_norm.weight"), from("final_layernorm.weight"), s.Width, 0)
		}
	})
	b.SetLayers(".attention.head_count_kv", kvHeads)
}

// mimo2Attention adds the norm before attention, the projections, and the sinks of the layers that have them.
func (b *mixturesBuilder) mimo2Attention(s Shape, kvHeads int, to, from func(string) string) {
	b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 0)
	b.Copy(to("attn_q.weight"), from("self_attn.q_proj.weight"), s.Heads*s.Size, s.Width)
	b.Copy(to("attn_k.weight"), from("self_attn.k_proj.weight"), kvHeads*s.Size, s.Width)
	b.Copy(to("attn_v.weight"), from("self_attn.v_proj.weight"), kvHeads*s.Value, s.Width)
	b.Copy(to("attn_output.weight"), from("self_attn.o_proj.weight"), s.Width, s.Heads*s.Value)
	b.CopyIf(to("attn_sinks.weight"), from("self_attn.attention_sink_bias"), s.Heads)
}

// mimo2Settings refuses settings without which a model is another one.
func (b *mixturesBuilder) mimo2Settings() {
	c := b.Config
	c.Only("hidden_act", "silu")
	c.Only("topk_method", "noaux_tc")
	c.Only("scoring_func", "sigmoid")
	if !c.BoolOr("norm_topk_prob", true) {
		c.Fail("norm_topk_prob is false; it must be true")
	}
	if c.BoolOr("attention_bias", false) {
		c.Fail("attention_bias is true; it must be false")
	}
	for key, like := range map[string]string{"swa_head_dim": "head_dim", "swa_v_head_dim": "v_head_dim", "swa_num_attention_heads": "num_attention_heads"} {
		if n, want := c.CountOr(key, 0, 0, MaxHeads), c.CountOr(like, 0, 0, MaxHeads); n != want && n != 0 {
			c.Fail("%s is %d; it must be %s (%d)", key, n, like, want)
		}
	}
	if n := c.CountOr("n_shared_experts", 0, 0, MaxExperts); n != 0 {
		c.Fail("n_shared_experts is %d; it must be 0", n)
	}
}

// exaoneMoE reads K-EXAONE, with the layer that predicts a further token, which stands behind the model's own.
func exaoneMoE(b *mixturesBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	c.Only("topk_method", "noaux_tc")
	b.renamed("first_last_k_dense_replace", "first_k_dense_replace")
	s := b.ReadShape()
	own, further := s.Layers, 0
	if b.Has("mtp.fc.weight") {
		if further = c.CountOr("num_nextn_predict_layers", 1, 0, 8); further != 1 {
			c.Fail("num_nextn_predict_layers is %d; 1 is supported", further)
		}
	}
	s.Layers += further
	b.DescribeDecoder("exaone-moe", s)
	b.RMSEps(1e-5)
	mix := b.routed("num_experts", "num_shared_experts", s)
	if mix.experts == 0 {
		c.Fail("num_experts is missing")
	}
	b.gating("sigmoid")
	b.RMSEnds(s.Width, false)
	b.Rope(s.Size)
	slides := append(b.kinds(own), make([]bool, further)...) // a predictor sees the whole text
	b.window("sliding_window", slides)
	if further > 0 {
		b.SetCount(".nextn_predict_layers", further)
	}
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		if i >= own {
			from = func(name string) string { return "mtp.layers.0." + name }
			b.Copy(to("nextn.eh_proj.weight"), "mtp.fc.weight", s.Width, 2*s.Width)
			b.Norm(to("nextn.enorm.weight"), "mtp.pre_fc_norm_embedding.weight", s.Width, 0)
			b.Norm(to("nextn.hnorm.weight"), "mtp.pre_fc_norm_hidden.weight", s.Width, 0)
			b.Norm(to("nextn.shared_head_norm.weight"), "mtp.norm.weight", s.Width, 0)
		}
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		bias := correction
		if b.Has(from("mlp.e_score_correction_bias")) {
			bias = "mlp.e_score_correction_bias"
		}
		if i >= own {
			b.Gated(s, to, from)
			return
		}
		b.routedBlock(s, mix, i, to, from, bias)
	})
}

// ernieMoE reads ERNIE 4.5 with a mixture in some layers. The layers that predict further tokens, which GGUF has no place for, are left out.
func ernieMoE(b *mixturesBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	c.Only("moe_gate", "topk", "top2_fused")
	b.renamed("moe_k", "num_experts_per_tok")
	s := b.RMSDecoder("ernie4_5-moe", 1e-5, true)
	experts, ffn := b.Experts("moe_num_experts"), c.Count("moe_intermediate_size", 1, MaxWidth)
	first, step := c.CountOr("moe_layer_start_index", 0, 0, s.Layers), c.CountOr("moe_layer_interval", 1, 1, MaxLayers)
	if last := c.CountOr("moe_layer_end_index", -1, -1, MaxLayers); last >= 0 && last < s.Layers-1 {
		c.Fail("moe_layer_end_index is %d; it must be -1 or that of the last layer (%d)", last, s.Layers-1)
	}
	n := c.CountOr("moe_num_shared_experts", 0, 0, 1<<8)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.SetCount(".expert_shared_count", n)
	b.SetCount(".expert_shared_feed_forward_length", n*ffn)
	b.SetCount(".leading_dense_block_count", first)
	b.SetCount(".interleave_moe_layer_step", step)
	b.Ignored = func(name string) bool { return strings.HasPrefix(name, "model.mtp_") }
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		if i < first || (i+1)%step != 0 {
			b.Gated(s, to, from)
			return
		}
		b.EitherMixture(s, experts, ffn, to, from)
		if bias := from("mlp.moe_statics.e_score_correction_bias"); b.Has(bias) {
			b.Values(to("exp_probs_b.bias"), bias, []int{1, experts}, []int{experts}, nil)
		}
		if n > 0 {
			b.SharedExpert(s, n*ffn, to, from("mlp.shared_experts."))
		}
	})
}
