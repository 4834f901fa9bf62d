package hf

import (
	"fmt"
	"strings"

	"grove/internal/weights/safetensors"
)

// Families with DeepSeek's mixtures: leading layers with a plain block, then routed and shared experts.

// glm4moe keeps the layers that predict further tokens: they stand behind the model's own.
func glm4moe(b *mixturesBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.ReadShape()
	m, more := 0, c.CountOr("num_nextn_predict_layers", 0, 0, 8)
	m, s.Layers = s.Layers, s.Layers+more
	b.DescribeDecoder("glm4moe", s)
	b.RMSEps(1e-5)
	mix := b.routed("n_routed_experts", "n_shared_experts", s)
	b.gating("sigmoid")
	b.RMSEnds(s.Width, false)
	b.Rope(b.TurnedPart(s, "partial_rotary_factor", 0.5))
	if more > 0 {
		b.SetCount(".nextn_predict_layers", more)
	}
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 0)
		b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 0)
		b.Attention(s, to, from)
		if c.BoolOr("use_qk_norm", false) {
			b.HeadNorms(s.Size, s.Size, to, from, 0)
		}
		b.routedBlock(s, mix, i, to, from, correction)
		if i >= m {
			b.predictor(s, to, from)
		}
	})
}

func deepSeek(b *mixturesBuilder) {
	b.Config.Only("hidden_act", "silu")
	s := b.Decoder("deepseek")
	b.RMSEps(1e-6)
	mix := b.routed("n_routed_experts", "n_shared_experts", s)
	b.gating("softmax")
	b.RMSEnds(s.Width, false)
	b.RopeWithin(s.Size)
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.TurnedAttention(s, to, from)
		b.routedBlock(s, mix, i, to, from, correction)
	})
}

func dots1(b *mixturesBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if b.Window() > 0 && c.BoolOr("use_sliding_window", true) {
		c.Fail("sliding_window is not supported")
	}
	s := b.Decoder("dots1")
	b.RMSEps(1e-6)
	mix := b.routed("n_routed_experts", "n_shared_experts", s)
	b.gating("sigmoid")
	b.RMSEnds(s.Width, false)
	b.Rope(s.Size)
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.routedBlock(s, mix, i, to, from, correction)
	})
}

// latent is the settings of multi-head latent attention.
type latent struct{ rank, query, plain, turned, value int }

func deepSeek2(b *mixturesBuilder) {
	s := b.latentModel("deepseek2", "model.")
	b.Ignored = func(name string) bool { // layers behind the last, which folders of GGUF lack too
		var layer int
		n, _ := fmt.Sscanf(name, LayerRoot+"%d.", &layer)
		return n == 1 && layer >= s.Layers
	}
}

// Mistral4 reads the text part of Mistral Small 4: DeepSeek's layers, with a temperature of queries.
func Mistral4(f *DecoderBuilder) {
	b := &mixturesBuilder{f}
	c := b.Config
	if !c.BoolOr("rope_interleave", true) {
		c.Fail("rope_interleave is false; it must be true")
	}
	if n := c.CountOr("n_group", 1, 1, MaxExperts); n > 1 {
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
	b.SetCount(".attention.temperature_length", rope.Count("original_max_position_embeddings", 1, MaxContext))
}

// latentModel presents latent attention in its absorbed form: one key of all heads, and the matrices that expand the latent. Names
// begin with prefix.
func (b *mixturesBuilder) latentModel(arch, prefix string) Shape {
	c := b.Config
	c.Only("hidden_act", "silu")
	c.Only("topk_method", "greedy", "group_limited_greedy", "noaux_tc")
	s := b.ReadShape()
	a := latent{
		rank: c.Count("kv_lora_rank", 1, MaxWidth), query: c.CountOr("q_lora_rank", 0, 0, MaxWidth),
		plain: c.Count("qk_nope_head_dim", 1, MaxHeads), turned: c.Count("qk_rope_head_dim", 2, MaxHeads), value: c.Count("v_head_dim", 1, MaxHeads),
	}
	s.KVHeads, s.Size, s.Value = 1, a.rank+a.turned, a.rank
	b.DescribeDecoder(arch, s)
	b.RMSEps(1e-6)
	b.SetCount(".attention.kv_lora_rank", a.rank)
	if a.query > 0 {
		b.SetCount(".attention.q_lora_rank", a.query)
	}
	b.SetCount(".attention.key_length_mla", a.plain+a.turned)
	b.SetCount(".attention.value_length_mla", a.value)
	mix := b.routed("n_routed_experts", "n_shared_experts", s)
	b.gating("softmax")
	b.Ends(prefix, s.Width, false, func() { b.Norm("output_norm.weight", prefix+"norm.weight", s.Width, 0) })
	b.latentRope(a.turned)
	b.Numbered(s.Layers, prefix+"layers.", func(i int, to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.latentAttention(s, a, to, from)
		b.routedBlock(s, mix, i, to, from, correction)
	})
	return s
}

// latentRope adds the rotation, with YaRN's multiplier of DeepSeek, which joins the scale of attention.
func (b *mixturesBuilder) latentRope(dims int) {
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
func (b *mixturesBuilder) latentAttention(s Shape, a latent, to, from func(string) string) {
	key := s.Heads * (a.plain + a.turned)
	if a.query > 0 {
		b.Both(to("attn_q_a"), from("self_attn.q_a_proj"), a.query, s.Width)
		b.Norm(to("attn_q_a_norm.weight"), from("self_attn.q_a_layernorm.weight"), a.query, 0)
		b.Copy(to("attn_q_b.weight"), from("self_attn.q_b_proj.weight"), key, a.query)
	} else {
		b.Copy(to("attn_q.weight"), from("self_attn.q_proj.weight"), key, s.Width)
	}
	b.Both(to("attn_kv_a_mqa"), from("self_attn.kv_a_proj_with_mqa"), a.rank+a.turned, s.Width)
	b.Norm(to("attn_kv_a_norm.weight"), from("self_attn.kv_a_layernorm.weight"), a.rank, 0)
	b.Both(to("attn_output"), from("self_attn.o_proj"), s.Width, s.Heads*a.value)
	up, rows := from("self_attn.kv_b_proj.weight"), a.plain+a.value
	t, ok := b.Find(up, s.Heads*rows, a.rank)
	if !ok {
		return
	}
	b.Note(Source{To: to("attn_k_b.weight"), From: up, Problem: "the model has this matrix in two parts, that of keys turned over"})
	typ := safetensors.FloatTypes[t.Type]
	b.Add(to("attn_k_b.weight"), typ, []int{s.Heads, a.rank, a.plain}, func(dst []byte) { // transposed, head by head
		size := len(dst) / (s.Heads * a.rank * a.plain)
		for h := range s.Heads {
			for r := range a.rank {
				for p := range a.plain {
					copy(dst[((h*a.rank+r)*a.plain+p)*size:][:size], t.Data[((h*rows+p)*a.rank+r)*size:])
				}
			}
		}
	})
	b.GatheredAs(to("attn_v_b.weight"), up, []int{s.Heads * rows, a.rank}, []int{s.Heads, a.value, a.rank}, func(i int) int {
		return i/a.value*rows + a.plain + i%a.value
	})
}

// bailing reads Ling 1: queries, keys and values are one matrix, one after the other.
func bailing(b *mixturesBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if c.BoolOr("norm_head", false) {
		c.Fail("norm_head is not supported")
	}
	s := b.Decoder("bailingmoe")
	b.RMSEps(1e-6)
	mix := b.routed("num_experts", "num_shared_experts", s)
	if mix.dense != 0 {
		c.Fail("first_k_dense_replace is %d; it must be 0", mix.dense)
	}
	b.gating("softmax")
	b.bailingEnds(s)
	b.RopeWithin(s.Size)
	rows := (s.Heads + 2*s.KVHeads) * s.Size
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		b.Norms(s.Width, to, from)
		first := 0
		for _, part := range []struct {
			to    string
			heads int
			turn  bool
		}{{"attn_q", s.Heads, true}, {"attn_k", s.KVHeads, true}, {"attn_v", s.KVHeads, false}} {
			at := first
			for _, kind := range []string{".weight", ".bias"} {
				if name := from("attention.query_key_value" + kind); kind == ".weight" || b.Has(name) {
					b.Gathered(to(part.to+kind), name, rows, s.Width, part.heads*s.Size, func(i int) int {
						if part.turn {
							i = FolderTurnRow(i, s.Size)
						}
						return at + i
					})
				}
			}
			first += part.heads * s.Size
		}
		b.Both(to("attn_output"), from("attention.dense"), s.Width, s.Heads*s.Size)
		b.routedBlock(s, mix, i, to, from, correction)
	})
}

// bailingEnds adds what is outside the layers of Ling.
func (b *mixturesBuilder) bailingEnds(s Shape) {
	b.VocabOf("model.word_embeddings.weight")
	b.Copy("token_embd.weight", "model.word_embeddings.weight", b.Vocab, s.Width)
	b.Norm("output_norm.weight", "model.norm.weight", s.Width, 0)
	b.Head("lm_head.weight", s.Width, false)
}

// bailing2 reads Ling 2.
func bailing2(b *mixturesBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if n := c.CountOr("num_nextn_predict_layers", 0, 0, 8); n > 0 {
		c.Fail("num_nextn_predict_layers is %d; only 0 is supported", n)
	}
	s := b.Decoder("bailingmoe2")
	b.RMSEps(1e-6)
	mix := b.routed("num_experts", "num_shared_experts", s)
	b.gating("sigmoid")
	b.bailingEnds(s)
	b.Rope(b.TurnedPart(s, "partial_rotary_factor", 0.5))
	b.Numbered(s.Layers, LayerRoot, func(i int, to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Both(to("attn_qkv"), from("attention.query_key_value"), (s.Heads+2*s.KVHeads)*s.Size, s.Width)
		b.Both(to("attn_output"), from("attention.dense"), s.Width, s.Heads*s.Size)
		b.Norm(to("attn_q_norm.weight"), from("attention.query_layernorm.weight"), s.Size, 0)
		b.Norm(to("attn_k_norm.weight"), from("attention.key_layernorm.weight"), s.Size, 0)
		b.routedBlock(s, mix, i, to, from, "mlp.gate.expert_bias")
	})
}

// hunyuanMoE has lists of one number for each layer, which must be equal.
func hunyuanMoE(b *mixturesBuilder) {
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
	s := b.Decoder("hunyuan-moe")
	b.RMSEps(1e-5)
	experts := c.Count("num_experts", 1, MaxExperts)
	b.SetCount(".expert_count", experts)
	b.SetCount(".expert_used_count", c.Count("moe_topk", 1, experts))
	shared := c.CountOr("num_shared_expert", 1, 1, 1<<8) * s.FFN
	b.SetCount(".expert_shared_feed_forward_length", shared)
	if n := c.CountOr("moe_intermediate_size", s.FFN, 1, MaxWidth); n != s.FFN {
		c.Fail("moe_intermediate_size is %d and intermediate_size %d; the two must be equal", n, s.FFN)
	}
	b.RMSEnds(s.Width, true)
	b.AlphaRope(s.Size)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.Norm(to("attn_q_norm.weight"), from("self_attn.query_layernorm.weight"), s.Size, 0)
		b.Norm(to("attn_k_norm.weight"), from("self_attn.key_layernorm.weight"), s.Size, 0)
		b.Mixture(s, experts, s.FFN, to, from("mlp.gate.wg.weight"), ExpertOf(from), "gate_proj", "up_proj", "down_proj")
		b.SharedExpert(s, shared, to, from("mlp.shared_mlp."))
	})
}

// miniMax reads MiniMax-M2, whose intermediate_size is that of an expert.
func miniMax(b *mixturesBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	var kinds []int
	c.Value("attn_type_list", &kinds, "an array of kinds")
	for i, kind := range kinds {
		if kind != 1 {
			c.Fail("attn_type_list has %d for layer %d; it must be 1", kind, i)
		}
	}
	s := b.Decoder("minimax-m2")
	b.RMSEps(1e-6)
	experts := b.Experts("num_local_experts")
	b.SetCount(".expert_feed_forward_length", s.FFN)
	b.gating("sigmoid")
	b.RMSEnds(s.Width, false)
	b.Rope(c.CountOr("rotary_dim", s.Size, 2, s.Size))
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Heads*s.Size, s.KVHeads*s.Size, to, from, 0)
		b.Mixture(s, experts, s.FFN, to, from("block_sparse_moe.gate.weight"), func(e int, part string) string {
			return from(fmt.Sprintf("block_sparse_moe.experts.%d.%s.weight", e, part))
		}, "w1", "w3", "w2")
		b.Norm(to("exp_probs_b.bias"), from("block_sparse_moe.e_score_correction_bias"), experts, 0)
	})
}
