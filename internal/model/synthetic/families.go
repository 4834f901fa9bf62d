package synthetic

import "grove/internal/weights/tensor"

// Latent is the settings of deepseek2 and mistral4 models: latent attention, whose keys have Spec.Size values, and the mixture.
type Latent struct {
	Rank, QRank int  // of keys and values; of queries, 0: none
	Rope, Value int  // rotated values of a key, values of a value
	Fused       bool // one attn_kv_b, as old files have it, instead of attn_k_b and attn_v_b

	Dense, Shared      int // leading layers without experts; shared experts
	Sigmoid, Norm      bool
	Groups, GroupsUsed int
}

// families are the architectures with more differences from Llama than [traits] list.
var families = map[string]func(b *builder){
	"bert":      (*builder).bert,
	"blockffn":  (*builder).blockFFN,
	"unixcoder": (*builder).bert,
	"codegen2":  (*builder).codeGen2,
	"deepseek2": (*builder).deepseek2,
	"gemma3n":   (*builder).gemma3n,
	"gemma4":    (*builder).gemma4,

	"diffusion-gemma": (*builder).gemma4,

	"gpt-oss":    (*builder).gptOSS,
	"gpt2":       (*builder).gpt2,
	"llama4":     (*builder).llama4,
	"mimo2":      (*builder).windowedMixture,
	"mistral4":   (*builder).mistral4,
	"phimoe":     (*builder).phiMoE,
	"starcoder2": (*builder).starCoder2,
	"step3":      (*builder).step3,
	"step35":     (*builder).windowedMixture,

	"eurobert":        (*builder).euroBERT,
	"gemma-embedding": (*builder).gemmaEmbedding,
	"jina-bert-v2":    (*builder).jinaBERTv2,
	"jina-bert-v3":    (*builder).jinaBERTv3,
	"modern-bert":     (*builder).modernBERT,
	"neo-bert":        (*builder).neoBERT,
	"nomic-bert":      (*builder).nomicBERT,
	"nomic-bert-moe":  (*builder).nomicBERTMoE,
	"t5":              (*builder).t5,
	"t5encoder":       (*builder).t5,
	"t5gemma":         (*builder).t5Gemma,
}

// linear adds a matrix and its bias.
func (b *builder) linear(name string, out, in int) {
	b.matrix(name+".weight", out, in)
	b.bias(name+".bias", out)
}

// bias adds small values about zero.
func (b *builder) bias(name string, shape ...int) { b.spread(name, 0.2, shape...) }

// spread adds values about zero, as far from it as scale.
func (b *builder) spread(name string, scale float32, shape ...int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = scale * float32(b.rng.NormFloat64())
	}
	b.add(name, tensor.F32, v, shape...)
}

func (b *builder) layerNorm(name string) {
	b.vector(name+".weight", b.spec.Width)
	b.bias(name+".bias", b.spec.Width)
}

func (b *builder) bert() {
	s := b.spec
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.floats("token_types.weight", tensor.F32, 2, s.Width)
	b.floats("position_embd.weight", tensor.F32, s.Context, s.Width)
	b.layerNorm("token_embd_norm")
	for l := range s.Layers {
		name := layerOf(l)
		for _, t := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			b.linear(name(t), s.Width, s.Width)
		}
		b.layerNorm(name("attn_output_norm"))
		b.linear(name("ffn_up"), s.FFN, s.Width)
		b.linear(name("ffn_down"), s.Width, s.FFN)
		b.layerNorm(name("layer_output_norm"))
	}
	b.set("attention.layer_norm_epsilon", float32(1e-12))
	if s.Arch == "bert" {
		b.set("attention.causal", false)
		b.set("pooling_type", uint32(1))
	}
}

func (b *builder) gptOSS() {
	s := b.spec
	b.ends()
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.linear(name("attn_q"), s.Heads*s.KeySize, s.Width)
		b.linear(name("attn_k"), s.KVHeads*s.KeySize, s.Width)
		b.linear(name("attn_v"), s.KVHeads*s.KeySize, s.Width)
		b.linear(name("attn_output"), s.Width, s.Heads*s.KeySize)
		b.spread(name("attn_sinks.weight"), 2, s.Heads)
		b.vector(name("post_attention_norm.weight"), s.Width)
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.bias(name("ffn_gate_inp.bias"), s.Experts)
		b.experts(name, s.FFN)
		b.spread(name("ffn_gate_exps.bias"), 5, s.Experts, s.FFN) // some lie beyond the clamp
		b.spread(name("ffn_up_exps.bias"), 5, s.Experts, s.FFN)
		b.bias(name("ffn_down_exps.bias"), s.Experts, s.Width)
	}
	b.yarn()
}

// blockFFN adds BlockFFN: about half of a row's gates are 0, and all are where the router's weights are.
func (b *builder) blockFFN() {
	s := b.spec
	b.ends()
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.vector(name("ffn_norm.weight"), s.Width)
		b.attention(name, traits{})
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.vector(name("ffn_gate_inp_norm.weight"), s.Experts)
		b.matrix(name("ffn_up_exps.weight"), s.Experts, s.FFN, s.Width)
		b.matrix(name("ffn_down_exps.weight"), s.Experts, s.Width, s.FFN)
	}
	b.set("embedding_scale", float32(3))
	b.set("residual_scale", float32(0.8))
	b.set("logit_scale", float32(0.5))
}

// phiMoE adds Phi 3.5 MoE: biases wherever it may have one, and experts that are often near enough to share a weight.
func (b *builder) phiMoE() {
	s := b.spec
	b.ends()
	b.bias("output_norm.bias", s.Width)
	b.bias("output.bias", s.Vocab)
	for l := range s.Layers {
		name := layerOf(l)
		b.layerNorm(name("attn_norm"))
		b.layerNorm(name("ffn_norm"))
		b.linear(name("attn_q"), s.Heads*s.KeySize, s.Width)
		b.linear(name("attn_k"), s.KVHeads*s.KeySize, s.Width)
		b.linear(name("attn_v"), s.KVHeads*s.KeySize, s.Width)
		b.linear(name("attn_output"), s.Width, s.Heads*s.KeySize)
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.experts(name, s.FFN)
	}
	b.set("router_jitter_noise", float32(0.2))
	if s.LongRope > 0 {
		b.longRope()
	}
}

// llama4 adds layers of which every other one is a mixture, with a temperature that short texts see.
func (b *builder) llama4() {
	s := b.spec
	b.ends()
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.attention(name, traits{})
		b.vector(name("ffn_norm.weight"), s.Width)
		if (l+1)%2 != 0 {
			b.gated(name, "", s.FFN)
			continue
		}
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.experts(name, s.FFN)
		b.gated(name, "_shexp", s.FFN)
	}
	b.set("interleave_moe_layer_step", uint32(2))
	b.set("attention.temperature_scale", float32(0.5))
	b.set("attention.temperature_length", uint32(16))
}

func (b *builder) deepseek2() {
	s, a := b.spec, b.spec.Latent
	b.ends()
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.latentAttention(name)
		b.vector(name("ffn_norm.weight"), s.Width)
		if l < a.Dense {
			b.gated(name, "", s.FFN)
			continue
		}
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		if a.Sigmoid {
			b.bias(name("exp_probs_b.bias"), s.Experts)
		}
		if s.Arch == "mistral4" {
			b.matrix(name("ffn_gate_up_exps.weight"), s.Experts, 2*s.FFN, s.Width)
			b.matrix(name("ffn_down_exps.weight"), s.Experts, s.Width, s.FFN)
		} else {
			b.experts(name, s.FFN)
		}
		if a.Shared > 0 {
			b.gated(name, "_shexp", a.Shared*s.FFN)
		}
	}
	b.set("attention.kv_lora_rank", uint32(a.Rank))
	if a.QRank > 0 {
		b.set("attention.q_lora_rank", uint32(a.QRank))
	}
	if !a.Fused {
		b.set("attention.key_length_mla", uint32(s.KeySize))
		b.set("attention.value_length_mla", uint32(s.ValueSize))
	}
	b.set("leading_dense_block_count", uint32(a.Dense))
	b.set("expert_shared_count", uint32(a.Shared))
	b.set("expert_weights_norm", a.Norm)
	b.set("expert_weights_scale", float32(1.5))
	gating := uint32(1)
	if a.Sigmoid {
		gating = 2
	}
	b.set("expert_gating_func", gating)
	if a.Groups > 0 {
		b.set("expert_group_count", uint32(a.Groups))
		b.set("expert_group_used_count", uint32(a.GroupsUsed))
	}
	b.yarn()
	b.set("rope.scaling.yarn_log_multiplier", float32(0.0707))
}

// mistral4 adds the layers of deepseek2, with a temperature that short texts see.
func (b *builder) mistral4() {
	b.deepseek2()
	b.set("attention.temperature_scale", float32(0.5))
	b.set("attention.temperature_length", uint32(16))
}

func (b *builder) latentAttention(name func(string) string) {
	s, a := b.spec, b.spec.Latent
	if a.QRank > 0 {
		b.matrix(name("attn_q_a.weight"), a.QRank, s.Width)
		b.vector(name("attn_q_a_norm.weight"), a.QRank)
		b.matrix(name("attn_q_b.weight"), s.Heads*s.KeySize, a.QRank)
	} else {
		b.matrix(name("attn_q.weight"), s.Heads*s.KeySize, s.Width)
	}
	b.matrix(name("attn_kv_a_mqa.weight"), a.Rank+a.Rope, s.Width)
	b.vector(name("attn_kv_a_norm.weight"), a.Rank)
	plain := s.KeySize - a.Rope
	if a.Fused {
		b.matrix(name("attn_kv_b.weight"), s.Heads*(plain+s.ValueSize), a.Rank)
	} else {
		b.matrix(name("attn_k_b.weight"), s.Heads, a.Rank, plain)
		b.matrix(name("attn_v_b.weight"), s.Heads, s.ValueSize, a.Rank)
	}
	b.matrix(name("attn_output.weight"), s.Width, s.Heads*s.ValueSize)
}

// yarn stretches positions fourfold from a short context, so that short texts see it.
func (b *builder) yarn() {
	b.set("rope.scaling.type", "yarn")
	b.set("rope.scaling.factor", float32(4))
	b.set("rope.scaling.original_context_length", uint32(64))
}
