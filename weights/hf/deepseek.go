package hf

import (
	"fmt"
	"strings"

	"grove/weights/hf/folder"
)

// Families with DeepSeek's mixtures: leading layers with a plain block, then routed and shared experts.

// routed is the settings of such a mixture.
type routed struct {
	experts, ffn, shared int // shared is the inner values of all shared experts
	dense                int // leading layers without experts
}

// routedKeys are the names that families give the settings.
type routedKeys struct{ experts, shared string }

// routed reads and adds the settings. Experts are chosen by sigmoids unless the folder says softmax.
func (b *builder) routed(k routedKeys, s shape) routed {
	c := b.Config
	if !c.Has(k.experts) {
		return routed{dense: s.layers}
	}
	m := routed{
		experts: b.Experts(k.experts), ffn: c.Count("moe_intermediate_size", 1, maxWidth),
		dense: c.CountOr("first_k_dense_replace", 0, 0, s.layers),
	}
	n := c.CountOr(k.shared, 0, 0, 1<<8)
	m.shared = n * m.ffn
	b.SetCount(".expert_feed_forward_length", m.ffn)
	b.SetCount(".expert_shared_count", n)
	b.SetCount(".leading_dense_block_count", m.dense)
	b.SetFloat(".expert_weights_scale", c.FloatOr("routed_scaling_factor", 1, 0, 1e4))
	folder.Set(b.Builder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", false))
	return m
}

// gating adds how experts are chosen: by sigmoids, or by softmax.
func (b *builder) gating(other string) {
	const softmax, sigmoid = 1, 2
	c := b.Config
	key := c.First("scoring_func", "score_function")
	c.Only(key, "softmax", "sigmoid")
	kind := softmax
	if c.TextOr(key, other) == "sigmoid" {
		kind = sigmoid
	}
	b.SetCount(".expert_gating_func", kind)
	if n := c.CountOr("n_group", 1, 1, maxExperts); n > 1 {
		b.SetCount(".expert_group_count", n)
		b.SetCount(".expert_group_used_count", c.Count("topk_group", 1, n))
	}
}

// routedBlock adds the feed-forward blocks of a layer. bias names the numbers that join the choice, if the folder has them.
func (b *builder) routedBlock(s shape, m routed, layer int, to, from func(string) string, bias string) {
	if layer < m.dense {
		b.gated(s, to, from)
		return
	}
	b.eitherMixture(s, m.experts, m.ffn, to, from)
	if b.Has(from(bias)) {
		b.Norm(to("exp_probs_b.bias"), from(bias), m.experts, 0)
	}
	if m.shared > 0 {
		b.sharedExpert(s, m.shared, to, from("mlp.shared_experts."))
	}
}

const correction = "mlp.gate.e_score_correction_bias"

// numbered is layers with their numbers.
func (b *builder) numbered(n int, root string, layer func(i int, to, from func(string) string)) {
	i := 0
	b.layers(n, root, func(to, from func(string) string) {
		layer(i, to, from)
		i++
	})
}

// glm4moe keeps the layers that predict further tokens: they stand behind the model's own.
func glm4moe(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.shape()
	m, more := 0, c.CountOr("num_nextn_predict_layers", 0, 0, 8)
	m, s.layers = s.layers, s.layers+more
	b.describe("glm4moe", s)
	b.RMSEps(1e-5)
	mix := b.routed(routedKeys{"n_routed_experts", "n_shared_experts"}, s)
	b.gating("sigmoid")
	b.rmsEnds(s.width, false)
	b.Rope(b.turnedPart(s, "partial_rotary_factor", 0.5))
	if more > 0 {
		b.SetCount(".nextn_predict_layers", more)
	}
	b.numbered(s.layers, layerRoot, func(i int, to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.width, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.width, 0)
		b.attention(s, to, from)
		if c.BoolOr("use_qk_norm", false) {
			b.headNorms(s.size, s.size, to, from, 0)
		}
		b.routedBlock(s, mix, i, to, from, correction)
		if i >= m {
			b.predictor(s, to, from)
		}
	})
}

// predictor adds what a layer that predicts further tokens has besides its blocks.
func (b *builder) predictor(s shape, to, from func(string) string) {
	b.Copy(to("nextn.eh_proj.weight"), from("eh_proj.weight"), s.width, 2*s.width)
	b.Norm(to("nextn.enorm.weight"), from("enorm.weight"), s.width, 0)
	b.Norm(to("nextn.hnorm.weight"), from("hnorm.weight"), s.width, 0)
	b.Norm(to("nextn.shared_head_norm.weight"), from("shared_head.norm.weight"), s.width, 0)
	b.CopyIf(to("nextn.embed_tokens.weight"), from("embed_tokens.weight"), b.Vocab, s.width)
	b.CopyIf(to("nextn.shared_head_head.weight"), from("shared_head.head.weight"), b.Vocab, s.width)
}

func deepSeek(b *builder) {
	b.Config.Only("hidden_act", "silu")
	s := b.decoder("deepseek")
	b.RMSEps(1e-6)
	mix := b.routed(routedKeys{"n_routed_experts", "n_shared_experts"}, s)
	b.gating("softmax")
	b.rmsEnds(s.width, false)
	b.ropeWithin(s.size)
	b.numbered(s.layers, layerRoot, func(i int, to, from func(string) string) {
		b.norms(s.width, to, from)
		b.turnedAttention(s, to, from)
		b.routedBlock(s, mix, i, to, from, correction)
	})
}

func dots1(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if b.Window() > 0 && c.BoolOr("use_sliding_window", true) {
		c.Fail("sliding_window is not supported")
	}
	s := b.decoder("dots1")
	b.RMSEps(1e-6)
	mix := b.routed(routedKeys{"n_routed_experts", "n_shared_experts"}, s)
	b.gating("sigmoid")
	b.rmsEnds(s.width, false)
	b.Rope(s.size)
	b.numbered(s.layers, layerRoot, func(i int, to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.headNorms(s.size, s.size, to, from, 0)
		b.routedBlock(s, mix, i, to, from, correction)
	})
}

// latent is the settings of multi-head latent attention.
type latent struct{ rank, query, plain, turned, value int }

func deepSeek2(b *builder) {
	s := b.latentModel("deepseek2", "model.")
	b.Ignored = func(name string) bool { // layers behind the last, which folders of GGUF lack too
		var layer int
		n, _ := fmt.Sscanf(name, layerRoot+"%d.", &layer)
		return n == 1 && layer >= s.layers
	}
}

// mistral4 reads the text part of Mistral Small 4: DeepSeek's layers, with a temperature of queries.
func mistral4(b *builder) {
	c := b.Config
	if !c.BoolOr("rope_interleave", true) {
		c.Fail("rope_interleave is false; it must be true")
	}
	if n := c.CountOr("n_group", 1, 1, maxExperts); n > 1 {
		c.Fail("n_group is %d; it must be 1", n)
	}
	if !c.Has("norm_topk_prob") {
		c.Values["norm_topk_prob"] = []byte("true")
	}
	rope, _ := b.RopeConfig()
	for _, key := range []string{"llama_4_scaling_beta", "mscale", "mscale_all_dim"} {
		if rope.FloatOr(key, 0, 0, 10) == 0 { // another temperature would be in its place
			rope.Fail("%s is 0 or missing", key)
		}
	}
	b.latentModel("mistral4", b.TextPrefix("vision_tower.", "multi_modal_projector.", "visual."))
	b.SetFloat(".attention.temperature_scale", rope.FloatOr("llama_4_scaling_beta", 0, 0, 10))
	b.SetCount(".attention.temperature_length", rope.Count("original_max_position_embeddings", 1, maxContext))
}

// latentModel presents latent attention in its absorbed form: one key of all heads, and the matrices that expand the latent. Names
// begin with prefix.
func (b *builder) latentModel(arch, prefix string) shape {
	c := b.Config
	c.Only("hidden_act", "silu")
	c.Only("topk_method", "greedy", "group_limited_greedy", "noaux_tc")
	s := b.shape()
	a := latent{
		rank: c.Count("kv_lora_rank", 1, maxWidth), query: c.CountOr("q_lora_rank", 0, 0, maxWidth),
		plain: c.Count("qk_nope_head_dim", 1, maxHeads), turned: c.Count("qk_rope_head_dim", 2, maxHeads), value: c.Count("v_head_dim", 1, maxHeads),
	}
	s.kvHeads, s.size, s.value = 1, a.rank+a.turned, a.rank
	b.describe(arch, s)
	b.RMSEps(1e-6)
	b.SetCount(".attention.kv_lora_rank", a.rank)
	if a.query > 0 {
		b.SetCount(".attention.q_lora_rank", a.query)
	}
	b.SetCount(".attention.key_length_mla", a.plain+a.turned)
	b.SetCount(".attention.value_length_mla", a.value)
	mix := b.routed(routedKeys{"n_routed_experts", "n_shared_experts"}, s)
	b.gating("softmax")
	b.ends(prefix, s.width, false, func() { b.Norm("output_norm.weight", prefix+"norm.weight", s.width, 0) })
	b.latentRope(a.turned)
	b.numbered(s.layers, prefix+"layers.", func(i int, to, from func(string) string) {
		b.norms(s.width, to, from)
		b.latentAttention(s, a, to, from)
		b.routedBlock(s, mix, i, to, from, correction)
	})
	return s
}

// latentRope adds the rotation, with YaRN's multiplier of DeepSeek, which joins the scale of attention.
func (b *builder) latentRope(dims int) {
	c, _ := b.RopeConfig()
	if !c.Has("mscale_all_dim") {
		b.Rope(dims)
		return
	}
	all := c.FloatOr("mscale_all_dim", 0, 0, 10)
	if m := c.FloatOr("mscale", all, 0, 10); m != all {
		c.Fail("mscale is %v and mscale_all_dim %v; the two must be equal", m, all)
	}
	delete(c.Values, "mscale")
	delete(c.Values, "mscale_all_dim")
	b.RopeOf(c, dims)
	b.SetFloat(".rope.scaling.yarn_log_multiplier", 0.1*all)
}

// latentAttention adds the block of a layer.
func (b *builder) latentAttention(s shape, a latent, to, from func(string) string) {
	key := s.heads * (a.plain + a.turned)
	if a.query > 0 {
		b.Both(to("attn_q_a"), from("self_attn.q_a_proj"), a.query, s.width)
		b.Norm(to("attn_q_a_norm.weight"), from("self_attn.q_a_layernorm.weight"), a.query, 0)
		b.Copy(to("attn_q_b.weight"), from("self_attn.q_b_proj.weight"), key, a.query)
	} else {
		b.Copy(to("attn_q.weight"), from("self_attn.q_proj.weight"), key, s.width)
	}
	b.Both(to("attn_kv_a_mqa"), from("self_attn.kv_a_proj_with_mqa"), a.rank+a.turned, s.width)
	b.Norm(to("attn_kv_a_norm.weight"), from("self_attn.kv_a_layernorm.weight"), a.rank, 0)
	b.Both(to("attn_output"), from("self_attn.o_proj"), s.width, s.heads*a.value)
	up, rows := from("self_attn.kv_b_proj.weight"), a.plain+a.value
	t, ok := b.Find(up, s.heads*rows, a.rank)
	if !ok {
		return
	}
	typ := folder.FloatTypes[t.Type]
	b.Add(to("attn_k_b.weight"), typ, []int{s.heads, a.rank, a.plain}, func(dst []byte) { // transposed, head by head
		size := len(dst) / (s.heads * a.rank * a.plain)
		for h := range s.heads {
			for r := range a.rank {
				for p := range a.plain {
					copy(dst[((h*a.rank+r)*a.plain+p)*size:][:size], t.Data[((h*rows+p)*a.rank+r)*size:])
				}
			}
		}
	})
	b.GatheredAs(to("attn_v_b.weight"), up, []int{s.heads * rows, a.rank}, []int{s.heads, a.value, a.rank}, func(i int) int {
		return i/a.value*rows + a.plain + i%a.value
	})
}

// bailing reads Ling 1: queries, keys and values are one matrix, one after the other.
func bailing(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if c.BoolOr("norm_head", false) {
		c.Fail("norm_head is not supported")
	}
	s := b.decoder("bailingmoe")
	b.RMSEps(1e-6)
	mix := b.routed(routedKeys{"num_experts", "num_shared_experts"}, s)
	if mix.dense != 0 {
		c.Fail("first_k_dense_replace is %d; it must be 0", mix.dense)
	}
	b.gating("softmax")
	b.bailingEnds(s)
	b.ropeWithin(s.size)
	rows := (s.heads + 2*s.kvHeads) * s.size
	b.numbered(s.layers, layerRoot, func(i int, to, from func(string) string) {
		b.norms(s.width, to, from)
		first := 0
		for _, part := range []struct {
			to    string
			heads int
			turn  bool
		}{{"attn_q", s.heads, true}, {"attn_k", s.kvHeads, true}, {"attn_v", s.kvHeads, false}} {
			at := first
			for _, kind := range []string{".weight", ".bias"} {
				if name := from("attention.query_key_value" + kind); kind == ".weight" || b.Has(name) {
					b.Gathered(to(part.to+kind), name, rows, s.width, part.heads*s.size, func(i int) int {
						if part.turn {
							i = TurnRow(i, s.size)
						}
						return at + i
					})
				}
			}
			first += part.heads * s.size
		}
		b.Both(to("attn_output"), from("attention.dense"), s.width, s.heads*s.size)
		b.routedBlock(s, mix, i, to, from, correction)
	})
}

// bailingEnds adds what is outside the layers of Ling.
func (b *builder) bailingEnds(s shape) {
	b.VocabOf("model.word_embeddings.weight")
	b.Copy("token_embd.weight", "model.word_embeddings.weight", b.Vocab, s.width)
	b.Norm("output_norm.weight", "model.norm.weight", s.width, 0)
	b.Head("lm_head.weight", s.width, false)
}

// bailing2 reads Ling 2.
func bailing2(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if n := c.CountOr("num_nextn_predict_layers", 0, 0, 8); n > 0 {
		c.Fail("num_nextn_predict_layers is %d; only 0 is supported", n)
	}
	s := b.decoder("bailingmoe2")
	b.RMSEps(1e-6)
	mix := b.routed(routedKeys{"num_experts", "num_shared_experts"}, s)
	b.gating("sigmoid")
	b.bailingEnds(s)
	b.Rope(b.turnedPart(s, "partial_rotary_factor", 0.5))
	b.numbered(s.layers, layerRoot, func(i int, to, from func(string) string) {
		b.norms(s.width, to, from)
		b.Both(to("attn_qkv"), from("attention.query_key_value"), (s.heads+2*s.kvHeads)*s.size, s.width)
		b.Both(to("attn_output"), from("attention.dense"), s.width, s.heads*s.size)
		b.Norm(to("attn_q_norm.weight"), from("attention.query_layernorm.weight"), s.size, 0)
		b.Norm(to("attn_k_norm.weight"), from("attention.key_layernorm.weight"), s.size, 0)
		b.routedBlock(s, mix, i, to, from, "mlp.gate.expert_bias")
	})
}

// hunyuanMoE has lists of one number for each layer, which must be equal.
func hunyuanMoE(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	for _, key := range []string{"moe_topk", "moe_intermediate_size", "num_shared_expert"} {
		var all []int
		if text := strings.TrimSpace(string(c.Values[key])); strings.HasPrefix(text, "[") && c.Value(key, &all, "an array of numbers") {
			for _, n := range all {
				if n != all[0] {
					c.Fail("%s differs between layers; one number for all is supported", key)
				}
			}
			if len(all) > 0 {
				c.Values[key] = fmt.Appendf(nil, "%d", all[0])
			}
		}
	}
	s := b.decoder("hunyuan-moe")
	b.RMSEps(1e-5)
	experts := c.Count("num_experts", 1, maxExperts)
	b.SetCount(".expert_count", experts)
	b.SetCount(".expert_used_count", c.Count("moe_topk", 1, experts))
	shared := c.CountOr("num_shared_expert", 1, 1, 1<<8) * s.ffn
	b.SetCount(".expert_shared_feed_forward_length", shared)
	if n := c.CountOr("moe_intermediate_size", s.ffn, 1, maxWidth); n != s.ffn {
		c.Fail("moe_intermediate_size is %d and intermediate_size %d; the two must be equal", n, s.ffn)
	}
	b.rmsEnds(s.width, true)
	b.alphaRope(s)
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.Norm(to("attn_q_norm.weight"), from("self_attn.query_layernorm.weight"), s.size, 0)
		b.Norm(to("attn_k_norm.weight"), from("self_attn.key_layernorm.weight"), s.size, 0)
		b.mixture(s, experts, s.ffn, to, from("mlp.gate.wg.weight"), expertOf(from), "gate_proj", "up_proj", "down_proj")
		b.sharedExpert(s, shared, to, from("mlp.shared_mlp."))
	})
}

// miniMax reads MiniMax-M2, whose intermediate_size is that of an expert.
func miniMax(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	var kinds []int
	c.Value("attn_type_list", &kinds, "an array of kinds")
	for i, kind := range kinds {
		if kind != 1 {
			c.Fail("attn_type_list has %d for layer %d; it must be 1", kind, i)
		}
	}
	s := b.decoder("minimax-m2")
	b.RMSEps(1e-6)
	experts := b.Experts("num_local_experts")
	b.SetCount(".expert_feed_forward_length", s.ffn)
	b.gating("sigmoid")
	b.rmsEnds(s.width, false)
	b.Rope(c.CountOr("rotary_dim", s.size, 2, s.size))
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norms(s.width, to, from)
		b.attention(s, to, from)
		b.headNorms(s.heads*s.size, s.kvHeads*s.size, to, from, 0)
		b.mixture(s, experts, s.ffn, to, from("block_sparse_moe.gate.weight"), func(e int, part string) string {
			return from(fmt.Sprintf("block_sparse_moe.experts.%d.%s.weight", e, part))
		}, "w1", "w3", "w2")
		b.Norm(to("exp_probs_b.bias"), from("block_sparse_moe.e_score_correction_bias"), experts, 0)
	})
}
