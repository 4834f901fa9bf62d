package synthetic

import (
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// traits are the differences of a decoder's tensors from Llama's.
type traits struct {
	biases               bool // of queries, keys and values
	fused                bool // queries, keys and values are one tensor, gate and up another
	headNorms, wideNorms bool // of queries and keys: by head, over all heads
	postNorms            bool // behind both blocks
	noPreNorms           bool
	canvas               bool // rows see each other; the last token is the mask
}

var decoders = map[string]traits{
	"dream":     {biases: true, canvas: true},
	"gemma2":    {postNorms: true},
	"gemma3":    {headNorms: true, postNorms: true},
	"llada":     {canvas: true},
	"llada-moe": {headNorms: true, canvas: true},
	"olmo2":     {wideNorms: true, postNorms: true, noPreNorms: true},
	"phi3":      {fused: true},
	"qwen2":     {biases: true},
	"qwen3":     {headNorms: true},
	"qwen3moe":  {headNorms: true},
	"rnd1":      {headNorms: true, canvas: true},
	"sdar":      {headNorms: true, canvas: true},
	"sdar_moe":  {headNorms: true, canvas: true},
}

// decoder adds the layers of a decoder with RMSNorm and a gate.
func (b *builder) decoder(t traits) {
	s := b.spec
	b.ends()
	for l := range s.Layers {
		at := layerOf(l)
		name := func(t string) string { return at(t + ".weight") }
		if !t.noPreNorms {
			b.vector(name("attn_norm"), s.Width)
			b.vector(name("ffn_norm"), s.Width)
		}
		b.attention(at, t)
		if t.postNorms {
			b.vector(name("post_attention_norm"), s.Width)
			b.vector(name("post_ffw_norm"), s.Width)
		}
		switch {
		case s.Experts > 0:
			b.floats(name("ffn_gate_inp"), tensor.F32, s.Experts, s.Width)
			b.experts(at, s.FFN)
		case t.fused:
			b.matrix(name("ffn_up"), 2*s.FFN, s.Width)
			b.matrix(name("ffn_down"), s.Width, s.FFN)
		default:
			b.gated(at, "", s.FFN)
		}
	}
	if s.Arch == "olmo2" && s.Window > 0 {
		b.yarn() // as in OLMo 3
	}
	if s.Arch == "gemma2" { // low, so that they change results
		b.set("attn_logit_softcapping", float32(3))
		b.set("final_logit_softcapping", float32(5))
	}
	if s.LongRope > 0 {
		b.longRope()
	}
	if t.canvas {
		b.set("attention.causal", false)
		b.metadata = append(b.metadata, gguf.KV{Key: "tokenizer.ggml.mask_token_id", Value: gguf.Of(uint32(s.Vocab - 1))})
		if s.Arch != "dream" && s.Arch != "rnd1" {
			b.metadata = append(b.metadata, gguf.KV{Key: "diffusion.shift_logits", Value: gguf.Of(s.Shift)})
		}
		if s.Arch == "sdar" || s.Arch == "sdar_moe" {
			b.metadata = append(b.metadata, gguf.KV{Key: "diffusion.block_length", Value: gguf.Of(uint32(s.Block))})
		}
	}
}

func (b *builder) attention(at func(string) string, t traits) {
	s := b.spec
	q, k, v := s.Heads*s.KeySize, s.KVHeads*s.KeySize, s.KVHeads*s.ValueSize
	if t.fused {
		b.matrix(at("attn_qkv.weight"), q+k+v, s.Width)
	} else {
		b.matrix(at("attn_q.weight"), q, s.Width)
		b.matrix(at("attn_k.weight"), k, s.Width)
		b.matrix(at("attn_v.weight"), v, s.Width)
	}
	b.matrix(at("attn_output.weight"), s.Width, s.Heads*s.ValueSize)
	if t.biases {
		b.bias(at("attn_q.bias"), q)
		b.bias(at("attn_k.bias"), k)
		b.bias(at("attn_v.bias"), v)
	}
	switch {
	case t.headNorms:
		b.vector(at("attn_q_norm.weight"), s.KeySize)
		b.vector(at("attn_k_norm.weight"), s.KeySize)
	case t.wideNorms:
		b.vector(at("attn_q_norm.weight"), q)
		b.vector(at("attn_k_norm.weight"), k)
	}
}

// longRope adds the two sets of factors of a rotation for texts of up to s.LongRope tokens and for longer ones.
func (b *builder) longRope() {
	s := b.spec
	for i, name := range []string{"rope_factors_short.weight", "rope_factors_long.weight"} {
		v := make([]float32, s.rotated()/2)
		for j := range v {
			v[j] = 1 + float32(i*j)/2 + float32(0.1*b.rng.Float32())
		}
		b.add(name, tensor.F32, v, len(v))
	}
	b.set("rope.scaling.original_context_length", uint32(s.LongRope))
}

// rotated returns how many values of a head rotate: three quarters of Phi 4's.
func (s Spec) rotated() int {
	if s.Arch == "phi3" {
		return s.KeySize / 8 * 6
	}
	return s.KeySize
}

// starCoder2 adds the layers that StarCoder 2 and GPT-2 share.
func (b *builder) starCoder2() {
	s := b.spec
	b.ends()
	b.bias("output_norm.bias", s.Width)
	q, k := s.Heads*s.KeySize, s.KVHeads*s.KeySize
	for l := range s.Layers {
		name := layerOf(l)
		b.layerNorm(name("attn_norm"))
		b.layerNorm(name("ffn_norm"))
		if s.Arch == "gpt2" {
			b.linear(name("attn_qkv"), q+2*k, s.Width)
		} else {
			b.linear(name("attn_q"), q, s.Width)
			b.linear(name("attn_k"), k, s.Width)
			b.linear(name("attn_v"), k, s.Width)
		}
		b.linear(name("attn_output"), s.Width, q)
		b.linear(name("ffn_up"), s.FFN, s.Width)
		b.linear(name("ffn_down"), s.Width, s.FFN)
	}
	b.set("attention.layer_norm_epsilon", float32(1e-5))
}

func (b *builder) gpt2() {
	b.starCoder2()
	b.floats("position_embd.weight", tensor.F32, b.spec.Context, b.spec.Width)
}
