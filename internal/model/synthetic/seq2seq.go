package synthetic

import (
	"fmt"

	"grove/internal/weights/tensor"
)

// t5 adds an encoder and a decoder of equal layers with biases by relative position. With Tied, the head is the table and
// the feed-forward blocks have no gate, as in T5 1.0. A t5encoder has no decoder.
func (b *builder) t5() {
	s := b.spec
	const buckets = 8
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	parts := []string{"enc", "dec"}
	if s.Arch == "t5encoder" {
		parts = parts[:1]
	} else if !s.Tied {
		b.matrix("output.weight", s.Vocab, s.Width)
	}
	block := func(name string) {
		q, kv := s.Heads*s.KeySize, s.KVHeads*s.KeySize
		b.vector(name+"_norm.weight", s.Width)
		b.matrix(name+"_q.weight", q, s.Width)
		b.matrix(name+"_k.weight", kv, s.Width)
		b.matrix(name+"_v.weight", kv, s.Width)
		b.matrix(name+"_o.weight", s.Width, q)
	}
	for _, part := range parts {
		b.vector(part+".output_norm.weight", s.Width)
		for l := range s.Layers {
			name := fmt.Sprintf("%s.blk.%d.", part, l)
			block(name + "attn")
			if l == 0 {
				b.spread(name+"attn_rel_b.weight", 2, buckets, s.Heads)
			}
			if part == "dec" {
				block(name + "cross_attn")
			}
			b.vector(name+"ffn_norm.weight", s.Width)
			if !s.Tied {
				b.matrix(name+"ffn_gate.weight", s.FFN, s.Width)
			}
			b.matrix(name+"ffn_up.weight", s.FFN, s.Width)
			b.matrix(name+"ffn_down.weight", s.Width, s.FFN)
		}
	}
	b.shrinkQueries()
	b.set("attention.relative_buckets_count", uint32(buckets))
	b.set("decoder_start_token_id", uint32(0))
}

// t5Gemma adds an encoder and a decoder of Gemma 2's layers, of two widths.
func (b *builder) t5Gemma() {
	s := b.spec
	part := func(name string, layers, width int) {
		attention := func(name string, from int) {
			b.vector(name+"_norm.weight", width)
			b.matrix(name+"_q.weight", s.Heads*s.KeySize, width)
			b.matrix(name+"_k.weight", s.KVHeads*s.KeySize, from)
			b.matrix(name+"_v.weight", s.KVHeads*s.KeySize, from)
			b.matrix(name+"_o.weight", width, s.Heads*s.KeySize)
		}
		b.vector(name+".output_norm.weight", width)
		for l := range layers {
			at := fmt.Sprintf("%s.blk.%d.", name, l)
			attention(at+"attn", width)
			b.vector(at+"post_attn_norm.weight", width)
			if name == "dec" {
				attention(at+"cross_attn", 2*s.Width)
				b.vector(at+"post_cross_attn_norm.weight", width)
			}
			b.vector(at+"ffn_norm.weight", width)
			b.vector(at+"post_ffw_norm.weight", width)
			b.matrix(at+"ffn_gate.weight", s.FFN, width)
			b.matrix(at+"ffn_up.weight", s.FFN, width)
			b.matrix(at+"ffn_down.weight", width, s.FFN)
		}
	}
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.matrix("enc.token_embd.weight", s.Vocab, 2*s.Width)
	part("enc", s.Layers+1, 2*s.Width)
	part("dec", s.Layers, s.Width)
	b.set("encoder.block_count", uint32(s.Layers+1))
	b.set("encoder.embedding_length", uint32(2*s.Width))
	b.set("encoder.attention.sliding_window", uint32(20))
	b.set("attention.scale", float32(0.2))
	b.set("attn_logit_softcapping", float32(3)) // low, so that they change results
	b.set("final_logit_softcapping", float32(5))
	b.set("decoder_start_token_id", uint32(2))
}

// shrinkQueries makes the queries of attention without a scale as small as a scale would.
func (b *builder) shrinkQueries() {
	for _, t := range b.out {
		if n := len(t.Name); n < 9 || t.Name[n-9:] != "_q.weight" {
			continue
		}
		v := make([]float32, t.Elems())
		if err := tensor.Unpack(t.Type, v, t.Data); err != nil {
			b.fail(err)
			return
		}
		for i := range v {
			v[i] /= 4
		}
		if err := tensor.Pack(t.Type, t.Data, v); err != nil {
			b.fail(err)
		}
	}
}

// codeGen2 adds a decoder with GPT-J's layers.
func (b *builder) codeGen2() {
	s := b.spec
	b.matrix("token_embd.weight", s.Vocab, s.Width)
	b.layerNorm("output_norm")
	b.linear("output", s.Vocab, s.Width)
	for l := range s.Layers {
		name := layerOf(l)
		b.layerNorm(name("attn_norm"))
		b.attention(name, traits{})
		b.linear(name("ffn_up"), s.FFN, s.Width)
		b.linear(name("ffn_down"), s.Width, s.FFN)
	}
	b.set("attention.layer_norm_epsilon", float32(1e-5))
}
