package synthetic

import (
	"fmt"

	"grove/weights/tensor"
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
		q, kv := s.Heads*s.Size, s.KVHeads*s.Size
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
