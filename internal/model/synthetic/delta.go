package synthetic

import "grove/internal/weights/tensor"

func init() {
	for _, arch := range []string{"qwen3next", "qwen35", "qwen35moe"} {
		families[arch] = (*builder).qwenDelta
	}
	families["kimi-linear"] = (*builder).kimiLinear
	families["lfm2"], families["lfm2moe"] = (*builder).lfm2, (*builder).lfm2
}

// Sizes of Kimi's delta nets.
const (
	deltaSize, deltaTaps = 32, 4
	deltaPeriod          = 3 // layers from one that attends to the next
)

// qwenDelta adds Qwen 3 Next and 3.5: Scan.Rank heads of values, which Scan.Groups heads of keys serve, of Scan.State values each.
func (b *builder) qwenDelta() {
	s, c := b.spec, b.spec.Scan
	b.ends()
	inner := c.Rank * c.State
	channels := inner + 2*c.Groups*c.State
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.vector(name("post_attention_norm.weight"), s.Width)
		b.qwenFeed(name)
		if (l+1)%c.Period == 0 {
			b.gatedAttention(name)
			continue
		}
		b.matrix(name("attn_qkv.weight"), channels, s.Width)
		b.matrix(name("attn_gate.weight"), inner, s.Width)
		if s.Arch == "qwen3next" {
			b.matrix(name("ssm_ba.weight"), 2*c.Rank, s.Width)
		} else {
			b.matrix(name("ssm_beta.weight"), c.Rank, s.Width)
			b.matrix(name("ssm_alpha.weight"), c.Rank, s.Width)
		}
		b.spread(name("ssm_conv1d.weight"), 0.5, channels, c.Taps)
		b.decays(name, c.Rank, c.Rank)
		b.vector(name("ssm_norm.weight"), c.State)
		b.matrix(name("ssm_out.weight"), s.Width, inner)
	}
	for key, n := range map[string]int{
		"inner_size": inner, "state_size": c.State, "conv_kernel": c.Taps, "time_step_rank": c.Rank, "group_count": c.Groups,
	} {
		b.set("ssm."+key, uint32(n))
	}
	b.set("full_attention_interval", uint32(c.Period))
	b.set("rope.dimension_count", uint32(s.KeySize/2))
	if s.Experts > 0 {
		b.set("expert_shared_feed_forward_length", uint32(s.FFN))
	}
}

// decays adds the rates of heads, which are negative, and what joins the steps.
func (b *builder) decays(name func(string) string, steps int, rates ...int) {
	v := make([]float32, rates[0])
	for i := range v {
		v[i] = -0.1 - 0.4*b.rng.Float32()
	}
	b.add(name("ssm_a"), tensor.F32, v, rates...)
	b.bias(name("ssm_dt.bias"), steps)
}

func (b *builder) qwenFeed(name func(string) string) {
	s := b.spec
	if s.Experts == 0 {
		b.gated(name, "", s.FFN)
		return
	}
	b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
	b.experts(name, s.FFN)
	b.floats(name("ffn_gate_inp_shexp.weight"), tensor.F32, s.Width)
	b.gated(name, "_shexp", s.FFN)
}

// gatedAttention adds attention whose queries are followed by gates.
func (b *builder) gatedAttention(name func(string) string) {
	s := b.spec
	b.matrix(name("attn_q.weight"), 2*s.Heads*s.KeySize, s.Width)
	b.matrix(name("attn_k.weight"), s.KVHeads*s.KeySize, s.Width)
	b.matrix(name("attn_v.weight"), s.KVHeads*s.KeySize, s.Width)
	b.matrix(name("attn_output.weight"), s.Width, s.Heads*s.KeySize)
	b.vector(name("attn_q_norm.weight"), s.KeySize)
	b.vector(name("attn_k_norm.weight"), s.KeySize)
}

// kimiLinear adds Kimi Linear: every third layer attends.
func (b *builder) kimiLinear() {
	s, a := b.spec, &b.spec.Latent
	*a = Latent{Rank: 32, Rope: 16}
	b.ends()
	heads, kvHeads := make([]uint32, s.Layers), make([]uint32, s.Layers)
	for l := range s.Layers {
		name := layerOf(l)
		heads[l] = uint32(s.Heads)
		b.vector(name("attn_norm.weight"), s.Width)
		b.vector(name("ffn_norm.weight"), s.Width)
		if (l+1)%deltaPeriod == 0 {
			kvHeads[l] = uint32(s.Heads)
			b.latentAttention(name)
		} else {
			b.kimiDelta(name)
		}
		if l == 0 {
			b.gated(name, "", s.FFN)
			continue
		}
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.bias(name("exp_probs_b.bias"), s.Experts)
		b.experts(name, s.FFN)
		b.gated(name, "_shexp", s.FFN)
	}
	b.set("attention.head_count", heads)
	b.set("attention.head_count_kv", kvHeads)
	b.set("attention.key_length", uint32(a.Rank+a.Rope))
	b.set("attention.value_length", uint32(a.Rank))
	b.set("attention.kv_lora_rank", uint32(a.Rank))
	b.set("attention.key_length_mla", uint32(s.KeySize))
	b.set("attention.value_length_mla", uint32(s.ValueSize))
	b.set("rope.dimension_count", uint32(a.Rope))
	b.set("kda.head_dim", uint32(deltaSize))
	b.set("ssm.conv_kernel", uint32(deltaTaps))
	b.set("leading_dense_block_count", uint32(1))
	b.set("expert_shared_count", uint32(1))
	b.set("expert_weights_scale", float32(1.5))
	b.set("expert_gating_func", uint32(2))
}

func (b *builder) kimiDelta(name func(string) string) {
	s := b.spec
	inner := s.Heads * deltaSize
	for _, t := range []string{"q", "k", "v"} {
		b.matrix(name("attn_"+t+".weight"), inner, s.Width)
		b.spread(name("ssm_conv1d_"+t+".weight"), 0.5, inner, 1, deltaTaps)
	}
	for _, t := range []string{"f", "g"} {
		b.matrix(name("ssm_"+t+"_a.weight"), deltaSize, s.Width)
		b.matrix(name("ssm_"+t+"_b.weight"), inner, deltaSize)
	}
	b.matrix(name("ssm_beta.weight"), s.Heads, s.Width)
	b.decays(name, inner, s.Heads, 1)
	b.vector(name("ssm_norm.weight"), deltaSize)
	b.matrix(name("attn_output.weight"), s.Width, inner)
}

// lfm2 adds LFM2: every third layer attends, the others are short convolutions.
func (b *builder) lfm2() {
	s := b.spec
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.vector("token_embd_norm.weight", s.Width)
	b.matrix("output.weight", s.Vocab, s.Width)
	kvHeads := make([]uint32, s.Layers)
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.vector(name("ffn_norm.weight"), s.Width)
		if (l+1)%deltaPeriod == 0 {
			kvHeads[l] = uint32(s.KVHeads)
			b.attention(name, traits{headNorms: true})
		} else {
			b.matrix(name("shortconv.in_proj.weight"), 3*s.Width, s.Width)
			b.spread(name("shortconv.conv.weight"), 0.5, s.Width, 3)
			b.matrix(name("shortconv.out_proj.weight"), s.Width, s.Width)
		}
		if s.Experts == 0 || l == 0 {
			b.gated(name, "", s.FFN)
			continue
		}
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.bias(name("exp_probs_b.bias"), s.Experts)
		b.experts(name, s.FFN)
	}
	b.set("attention.head_count_kv", kvHeads)
	b.set("shortconv.l_cache", uint32(3))
	if s.Experts > 0 {
		b.set("leading_dense_block_count", uint32(1))
		b.set("expert_gating_func", uint32(2))
	}
}
