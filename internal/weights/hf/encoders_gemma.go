package hf

import (
	"fmt"
	"maps"
	"slices"
)

// encodersGemmaEmbedding reads EmbeddingGemma: Gemma 3 without a head, whose tokens see each other.
func encodersGemmaEmbedding(f *FolderBuilder) {
	b := &encodersBuilder{f}
	c := b.Config
	b.GemmaActs()
	if !c.BoolOr("use_bidirectional_attention", false) {
		c.Fail("use_bidirectional_attention is false or missing; the tokens of an encoder see each other")
	}
	for _, key := range []string{"attn_logit_softcapping", "final_logit_softcapping"} {
		if c.Has(key) {
			c.Fail("%s is not supported", key)
		}
	}
	if c.BoolOr("attention_bias", false) {
		c.Fail("attention_bias is true; only false is supported")
	}
	s := b.describe("gemma-embedding")
	b.RMSEps(1e-6)
	b.Gemma3Rope(s.size)
	if n := c.CountOr("query_pre_attn_scalar", s.size, 1, encodersMaxWidth); n != s.size {
		c.Fail("query_pre_attn_scalar is %d; it must be head_dim (%d)", n, s.size)
	}
	period := c.CountOr(c.First("sliding_window_pattern", "_sliding_window_pattern"), 6, 1, encodersMaxLayers)
	b.SetCount(".attention.sliding_window_pattern", period)
	b.Windows(s.layers, func(layer int) bool { return layer%period == period-1 })
	p := b.below("embed_tokens.weight", "model.")
	b.Copy("token_embd.weight", p+"embed_tokens.weight", b.Vocab, s.width)
	b.Norm("output_norm.weight", p+"norm.weight", s.width, 1)
	b.layers(s.layers, p+"layers.", func(_ int, to, from func(string) string) {
		for _, n := range []struct {
			to, from string
			n        int
		}{
			{"attn_norm", "input_layernorm", s.width}, {"post_attention_norm", "post_attention_layernorm", s.width}, {"ffn_norm", "pre_feedforward_layernorm", s.width},
			{"post_ffw_norm", "post_feedforward_layernorm", s.width}, {"attn_q_norm", "self_attn.q_norm", s.size}, {"attn_k_norm", "self_attn.k_norm", s.size},
		} {
			b.Norm(to(n.to+".weight"), from(n.from+".weight"), n.n, 1) // Gemma's norms multiply by one more than their weights
		}
		b.decoderLayer(s, to, from)
	})
	b.encodes(false)
}

// decoderLayer adds the matrices of a layer that has those of a decoder.
func (b *encodersBuilder) decoderLayer(s encodersShape, to, from func(string) string) {
	for _, n := range []struct {
		to, from string
		out, in  int
	}{
		{"attn_q", "self_attn.q_proj", s.heads * s.size, s.width}, {"attn_k", "self_attn.k_proj", s.kvHeads * s.size, s.width},
		{"attn_v", "self_attn.v_proj", s.kvHeads * s.size, s.width}, {"attn_output", "self_attn.o_proj", s.width, s.heads * s.size},
		{"ffn_gate", "mlp.gate_proj", s.ffn, s.width}, {"ffn_up", "mlp.up_proj", s.ffn, s.width}, {"ffn_down", "mlp.down_proj", s.width, s.ffn},
	} {
		b.Copy(to(n.to+".weight"), from(n.from+".weight"), n.out, n.in)
	}
}

// renamed gives settings the names that most families have.
func (b *encodersBuilder) renamed(names map[string]string) {
	for from, to := range names {
		if b.Config.Has(from) {
			b.Config.Values[to] = b.Config.Values[from]
		}
	}
}

// must refuses settings that are there and are not the number or truth value that they must be.
func (b *encodersBuilder) must(settings map[string]any) {
	c := b.Config
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		switch want := settings[key].(type) {
		case bool:
			if got := c.BoolOr(key, want); got != want {
				c.Fail("%s is %v; it must be %v", key, got, want)
			}
		case float64:
			if got := c.FloatOr(key, want, -1e12, 1e12); got != want {
				c.Fail("%s is %v; it must be %v", key, got, want)
			}
		default:
			panic(fmt.Sprintf("a setting that is a %T", want))
		}
	}
}
