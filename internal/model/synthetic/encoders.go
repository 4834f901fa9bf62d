package synthetic

import "grove/internal/weights/tensor"

// bertLike adds what the successors of BERT have: norms behind the blocks, and of the blocks what more adds.
func (b *builder) bertLike(more func(name func(string) string, l int)) {
	s := b.spec
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.floats("token_types.weight", tensor.F32, 2, s.Width)
	b.layerNorm("token_embd_norm")
	for l := range s.Layers {
		name := layerOf(l)
		more(name, l)
		b.layerNorm(name("attn_output_norm"))
		b.layerNorm(name("layer_output_norm"))
	}
	b.set("attention.layer_norm_epsilon", float32(1e-12))
	b.encodes(1)
}

// encodes sets what the files of encoders say: a pooling, and that tokens see each other.
func (b *builder) encodes(pooling uint32) {
	b.set("attention.causal", false)
	b.set("pooling_type", pooling)
	b.set("rope.freq_base", float32(2000)) // low, so that distances turn more
}

func (b *builder) nomicBERT() {
	s := b.spec
	b.bertLike(func(name func(string) string, _ int) {
		b.matrix(name("attn_qkv.weight"), 3*s.Width, s.Width)
		b.matrix(name("attn_output.weight"), s.Width, s.Width)
		b.gated(name, "", s.FFN)
	})
}

// fused adds queries, keys and values in one matrix, and a feed-forward block without a gate, with biases.
func (b *builder) fused(name func(string) string) {
	s := b.spec
	b.linear(name("attn_qkv"), 3*s.Width, s.Width)
	b.linear(name("attn_output"), s.Width, s.Width)
}

func (b *builder) jinaBERTv3() {
	b.bertLike(func(name func(string) string, _ int) {
		b.fused(name)
		b.linear(name("ffn_up"), b.spec.FFN, b.spec.Width)
		b.linear(name("ffn_down"), b.spec.Width, b.spec.FFN)
	})
}

func (b *builder) nomicBERTMoE() {
	s := b.spec
	b.bertLike(func(name func(string) string, l int) {
		b.fused(name)
		if l%2 == 0 {
			b.linear(name("ffn_up"), s.FFN, s.Width)
			b.linear(name("ffn_down"), s.Width, s.FFN)
			return
		}
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.matrix(name("ffn_up_exps.weight"), s.Experts, s.FFN, s.Width)
		b.matrix(name("ffn_down_exps.weight"), s.Experts, s.Width, s.FFN)
		if s.ExpertsBias {
			b.bias(name("ffn_exps.bias"), s.Width)
		}
	})
	b.set("moe_every_n_layers", uint32(2))
}

// jinaBERTv2 adds a model for code; its layers have the gate in front of what it gates, in a tensor of its own, and not at all.
func (b *builder) jinaBERTv2() {
	s := b.spec
	b.bertLike(func(name func(string) string, l int) {
		for _, t := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			b.linear(name(t), s.Width, s.Width)
		}
		b.layerNorm(name("attn_q_norm"))
		b.layerNorm(name("attn_k_norm"))
		switch l % 3 {
		case 0:
			b.layerNorm(name("attn_norm_2"))
			b.matrix(name("ffn_up.weight"), 2*s.FFN, s.Width)
		case 1:
			b.matrix(name("ffn_gate.weight"), s.FFN, s.Width)
			b.matrix(name("ffn_up.weight"), s.FFN, s.Width)
		default:
			b.linear(name("ffn_up"), s.FFN, s.Width)
		}
		b.linear(name("ffn_down"), s.Width, s.FFN)
	})
	b.linear("cls", 1, s.Width)
}

func (b *builder) modernBERT() {
	s := b.spec
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.vector("token_embd_norm.weight", s.Width)
	b.vector("output_norm.weight", s.Width)
	for l := range s.Layers {
		name := layerOf(l)
		if l > 0 {
			b.vector(name("attn_norm.weight"), s.Width)
		}
		b.matrix(name("attn_qkv.weight"), 3*s.Width, s.Width)
		b.matrix(name("attn_output.weight"), s.Width, s.Width)
		b.vector(name("ffn_norm.weight"), s.Width)
		b.matrix(name("ffn_up.weight"), 2*s.FFN, s.Width)
		b.matrix(name("ffn_down.weight"), s.Width, s.FFN)
	}
	b.matrix("cls.weight", s.Width, s.Width)
	b.vector("cls.norm.weight", s.Width)
	b.linear("cls.output", 1, s.Width)
	b.set("attention.layer_norm_epsilon", float32(1e-5))
	b.set("attention.sliding_window_pattern", uint32(3))
	b.set("rope.freq_base_swa", float32(500))
	b.encodes(2)
}

func (b *builder) euroBERT() {
	s := b.spec
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.vector("output_norm.weight", s.Width)
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.attention(name, traits{})
		b.vector(name("ffn_norm.weight"), s.Width)
		b.gated(name, "", s.FFN)
	}
	b.encodes(1)
}

func (b *builder) neoBERT() {
	s := b.spec
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.vector("enc.output_norm.weight", s.Width)
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.matrix(name("attn_qkv.weight"), 3*s.Width, s.Width)
		b.matrix(name("attn_output.weight"), s.Width, s.Width)
		b.vector(name("ffn_norm.weight"), s.Width)
		b.matrix(name("ffn_up.weight"), 2*s.FFN, s.Width)
		b.matrix(name("ffn_down.weight"), s.Width, s.FFN)
	}
	b.linear("cls", s.Width, s.Width)
	b.linear("cls.output", 1, s.Width)
	b.encodes(2)
}

func (b *builder) gemmaEmbedding() {
	s := b.spec
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.vector("output_norm.weight", s.Width)
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.attention(name, traits{headNorms: true})
		b.vector(name("post_attention_norm.weight"), s.Width)
		b.vector(name("ffn_norm.weight"), s.Width)
		b.gated(name, "", s.FFN)
		b.vector(name("post_ffw_norm.weight"), s.Width)
	}
	b.matrix("dense_2.weight", 2*s.Width, s.Width)
	b.matrix("dense_3.weight", s.Width, 2*s.Width)
	b.set("dense_2_feat_in", uint32(s.Width))
	b.set("dense_2_feat_out", uint32(2*s.Width))
	b.set("dense_3_feat_in", uint32(2*s.Width))
	b.set("dense_3_feat_out", uint32(s.Width))
	b.set("rope.freq_base_swa", float32(500))
	b.encodes(1)
}
