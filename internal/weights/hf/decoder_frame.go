// decoder_frame.go says what folders of decoders share: settings, the frame of layers, attention, feed-forward blocks and mixtures.

package hf

import (
	"fmt"
	"strings"
)

// Limits on settings: generous for any model, small enough that products of them stay in range.
const (
	MaxLayers  = 1 << 10
	MaxContext = 1 << 24
	MaxWidth   = 1 << 20
	MaxHeads   = 1 << 12
	MaxExperts = 1 << 12
)

// DecoderBuilder is a folder of a decoder.
type DecoderBuilder struct{ *FolderBuilder }

// Shape is the settings that decoders share.
type Shape struct {
	Layers, Width, FFN   int
	Heads, KVHeads, Size int
	Value                int // of a head's values; 0: Size
	Context              int
}

// Decoder reads the shared settings and adds them.
func (b *DecoderBuilder) Decoder(arch string) Shape {
	s := b.ReadShape()
	b.DescribeDecoder(arch, s)
	return s
}

// ReadShape reads the shared settings.
func (b *DecoderBuilder) ReadShape() Shape {
	c := b.Config
	s := Shape{
		Layers:  c.Count("num_hidden_layers", 1, MaxLayers),
		Width:   c.Count("hidden_size", 1, MaxWidth),
		FFN:     c.Count("intermediate_size", 1, MaxWidth),
		Heads:   c.Count("num_attention_heads", 1, MaxHeads),
		Context: c.Count("max_position_embeddings", 1, MaxContext),
	}
	s.KVHeads = c.CountOr("num_key_value_heads", s.Heads, 1, MaxHeads)
	s.Size = c.CountOr("head_dim", s.Width/s.Heads, 1, MaxHeads)
	return s
}

// DescribeDecoder adds which model this is, and the shared settings.
func (b *DecoderBuilder) DescribeDecoder(arch string, s Shape) {
	b.Describe(arch)
	b.SetCount(".context_length", s.Context)
	b.SetCount(".embedding_length", s.Width)
	b.SetCount(".block_count", s.Layers)
	b.SetCount(".feed_forward_length", s.FFN)
	b.SetCount(".attention.head_count", s.Heads)
	b.SetCount(".attention.head_count_kv", s.KVHeads)
	b.SetCount(".attention.key_length", s.Size)
	if s.Value == 0 {
		s.Value = s.Size
	}
	b.SetCount(".attention.value_length", s.Value)
}

// Layers calls layer for each layer, with functions that complete the names of its tensors: as GGUF and
// as the folder has them below root.
func (b *DecoderBuilder) Layers(n int, root string, layer func(to, from func(string) string)) {
	for i := 0; i < n && b.OK(); i++ {
		layer(
			func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) },
			func(name string) string { return fmt.Sprintf("%s%d.%s", root, i, name) },
		)
	}
}

// Ends adds the embedding table, the final norm (norm does it) and the output head, below prefix; the head
// is left out where it is the table. Folders that read images too may have it beside the text part.
func (b *DecoderBuilder) Ends(prefix string, width int, tied bool, norm func()) {
	table, head := "embed_tokens.weight", "lm_head.weight"
	if part, _, _ := strings.Cut(prefix, "."); b.Has(part + "." + head) {
		head = part + "." + head
	}
	b.VocabOf(prefix + table)
	b.Copy("token_embd.weight", prefix+table, b.Vocab, width)
	norm()
	b.Head(head, width, tied)
}

// RMSEnds is [DecoderBuilder.Ends] for a family with RMSNorm whose tensors are below model.
func (b *DecoderBuilder) RMSEnds(width int, tied bool) {
	b.Ends("model.", width, tied, func() { b.Norm("output_norm.weight", "model.norm.weight", width, 0) })
}

// RMSDecoder is [DecoderBuilder.Decoder] for a family with RMSNorm, whose epsilon is other where the folder does not say, with
// [DecoderBuilder.RMSEnds] and the rotation of whole heads.
func (b *DecoderBuilder) RMSDecoder(arch string, other float64, tied bool) Shape {
	s := b.Decoder(arch)
	b.RMSEps(other)
	b.RMSEnds(s.Width, tied)
	b.Rope(s.Size)
	return s
}

// LayerRoot begins the names of layers in most families.
const LayerRoot = "model.layers."

// Attention adds the projections of a family whose heads rotate by halves, as in GGUF.
func (b *DecoderBuilder) Attention(s Shape, to, from func(string) string) {
	b.Both(to("attn_q"), from("self_attn.q_proj"), s.Heads*s.Size, s.Width)
	b.Both(to("attn_k"), from("self_attn.k_proj"), s.KVHeads*s.Size, s.Width)
	b.Both(to("attn_v"), from("self_attn.v_proj"), s.KVHeads*s.Size, s.Width)
	b.Both(to("attn_output"), from("self_attn.o_proj"), s.Width, s.Heads*s.Size)
}

// HeadNorms adds the norms of queries and keys.
func (b *DecoderBuilder) HeadNorms(q, k int, to, from func(string) string, add float32) {
	b.Norm(to("attn_q_norm.weight"), from("self_attn.q_norm.weight"), q, add)
	b.Norm(to("attn_k_norm.weight"), from("self_attn.k_norm.weight"), k, add)
}

// Norms adds the norms before the two blocks of a layer.
func (b *DecoderBuilder) Norms(width int, to, from func(string) string) {
	b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), width, 0)
	b.Norm(to("ffn_norm.weight"), from("post_attention_layernorm.weight"), width, 0)
}

// Gated adds a gated feed-forward block.
func (b *DecoderBuilder) Gated(s Shape, to, from func(string) string) {
	b.Copy(to("ffn_gate.weight"), from("mlp.gate_proj.weight"), s.FFN, s.Width)
	b.Copy(to("ffn_up.weight"), from("mlp.up_proj.weight"), s.FFN, s.Width)
	b.Copy(to("ffn_down.weight"), from("mlp.down_proj.weight"), s.Width, s.FFN)
}

// TurnedAttention adds the projections of llama, whose queries and keys change their order.
func (b *DecoderBuilder) TurnedAttention(s Shape, to, from func(string) string) {
	b.Turned(to("attn_q"), from("self_attn.q_proj"), s.Heads, s.Size, s.Width)
	b.Turned(to("attn_k"), from("self_attn.k_proj"), s.KVHeads, s.Size, s.Width)
	b.Both(to("attn_v"), from("self_attn.v_proj"), s.KVHeads*s.Size, s.Width)
	b.Both(to("attn_output"), from("self_attn.o_proj"), s.Width, s.Heads*s.Size)
}

// Numbered is [DecoderBuilder.Layers] with their numbers.
func (b *DecoderBuilder) Numbered(n int, root string, layer func(i int, to, from func(string) string)) {
	i := 0
	b.Layers(n, root, func(to, from func(string) string) {
		layer(i, to, from)
		i++
	})
}

// TurnedPart returns how many values of a head rotate, where that is a part of them.
func (b *DecoderBuilder) TurnedPart(s Shape, key string, other float64) int {
	c, _ := b.RopeConfig()
	part := b.Config.FloatOr(key, other, 0.01, 1)
	return int(c.FloatOr(key, part, 0.01, 1) * float64(s.Size))
}

// GatedIf adds a gated feed-forward block with the biases that there are.
func (b *DecoderBuilder) GatedIf(s Shape, to, from func(string) string) {
	b.Both(to("ffn_gate"), from("mlp.gate_proj"), s.FFN, s.Width)
	b.Both(to("ffn_up"), from("mlp.up_proj"), s.FFN, s.Width)
	b.Both(to("ffn_down"), from("mlp.down_proj"), s.Width, s.FFN)
}

// Plain adds a feed-forward block without a gate, with the biases that there are.
func (b *DecoderBuilder) Plain(s Shape, to, from func(string) string) {
	b.Both(to("ffn_up"), from("mlp.up_proj"), s.FFN, s.Width)
	b.Both(to("ffn_down"), from("mlp.down_proj"), s.Width, s.FFN)
}

// RopeWithin is [FolderBuilder.Rope] for a family whose rule dynamic changes the base for texts beyond the context alone, which grove refuses.
func (b *DecoderBuilder) RopeWithin(dims int) {
	c, theta := b.RopeConfig()
	if c.TextOr(c.First("rope_type", "type"), "default") != "dynamic" {
		b.Rope(dims)
		return
	}
	b.SetCount(".rope.dimension_count", dims)
	b.SetFloat(".rope.freq_base", theta)
}

// CenteredEps adds the epsilon of LayerNorm.
func (b *DecoderBuilder) CenteredEps(key string, other float64) {
	b.SetFloat(".attention.layer_norm_epsilon", b.Config.FloatOr(key, other, 0, 1))
}

// Epsilon adds the epsilon of RMSNorm, under the name that a family gives it.
func (b *DecoderBuilder) Epsilon(key string, other float64) {
	b.SetFloat(".attention.layer_norm_rms_epsilon", b.Config.FloatOr(key, other, 0, 1))
}
