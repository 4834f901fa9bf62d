package heads

import (
	"grove/weights/hf/folder"
	"grove/weights/tensor"
)

// layer says where a decoder layer of a head is: its names of GGUF and of the file, and how many values its queries, keys and values are
// products of.
type layer struct {
	to, from string
	inputs   int
	norm     bool // it has a norm before the attention
	mlp      bool // it has a feed-forward part
	twice    bool // whose last product has twice the width: what logits are made of, and then what the stream is
}

// attention adds the settings of the layers of a head, and checks them. Published rotations pair a head's values i and i + half; a
// file whose config.json says rope_pairs has its pairs side by side.
func (b *builder) attention() {
	c := b.Config
	heads := c.Count("num_attention_heads", 1, 4096)
	keys := c.CountOr("num_key_value_heads", heads, 1, 4096)
	if b.OK() && heads%keys != 0 {
		c.Fail("num_key_value_heads is %d; it must divide num_attention_heads (%d)", keys, heads)
	}
	if b.OK() && !c.Has("head_dim") && b.width%heads != 0 {
		c.Fail("num_attention_heads is %d; it must divide the width (%d), or head_dim must be there", heads, b.width)
	}
	size := c.CountOr("head_dim", b.width/max(1, heads), 1, 1<<14)
	if b.OK() && size%2 != 0 {
		c.Fail("head_dim is %d; it must be even", size)
	}
	c.Only("hidden_act", "silu")
	if c.FloatOr("partial_rotary_factor", 1, 0, 1) != 1 {
		c.Fail("partial_rotary_factor is not supported; all of a head's values must rotate")
	}
	if !b.OK() {
		return
	}
	b.heads, b.keys, b.size = heads, keys, size
	b.SetCount(".attention.head_count", heads)
	b.SetCount(".attention.head_count_kv", keys)
	b.SetCount(".attention.key_length", size)
	b.RMSEps(1e-6)
	b.Rope(size)
	folder.Set(b.Builder, b.Arch+".rope.neox", !b.top.BoolOr("rope_pairs", false))
}

// layer adds the tensors of a decoder layer.
func (b *builder) layer(l layer) {
	to := func(name string) string { return l.to + name }
	from := func(name string) string { return l.from + name }
	if l.norm {
		b.take(to("attn_norm.weight"), from("input_layernorm.weight"), b.width)
	}
	q, kv := b.heads*b.size, b.keys*b.size
	for _, m := range []struct {
		to, from string
		out, in  int
	}{
		{"attn_q", "self_attn.q_proj", q, l.inputs}, {"attn_k", "self_attn.k_proj", kv, l.inputs},
		{"attn_v", "self_attn.v_proj", kv, l.inputs}, {"attn_output", "self_attn.o_proj", b.width, q},
	} {
		b.take(to(m.to+".weight"), from(m.from+".weight"), m.out, m.in)
		b.takeIf(to(m.to+".bias"), from(m.from+".bias"), m.out)
	}
	b.takeIf(to("attn_q_norm.weight"), from("self_attn.q_norm.weight"), b.size)
	b.takeIf(to("attn_k_norm.weight"), from("self_attn.k_norm.weight"), b.size)
	if l.mlp {
		b.feedForward(l)
	}
}

// feedForward adds the feed-forward part of a layer: its width is that of the first layer's matrix.
func (b *builder) feedForward(l layer) {
	to := func(name string) string { return l.to + name }
	from := func(name string) string { return l.from + name }
	if b.inner == 0 {
		rows, _ := b.matrix(from("mlp.gate_proj.weight"))
		b.inner = b.Config.CountOr("intermediate_size", rows, 1, maxWidth)
		if rows > 0 && b.inner != rows {
			b.Fail("%s: it has %d rows; intermediate_size is %d in config.json", tensor.Label(from("mlp.gate_proj.weight")), rows, b.inner)
		}
		b.SetCount(".feed_forward_length", b.inner)
	}
	b.take(to("ffn_norm.weight"), from("post_attention_layernorm.weight"), b.width)
	b.take(to("ffn_gate.weight"), from("mlp.gate_proj.weight"), b.inner, b.width)
	b.take(to("ffn_up.weight"), from("mlp.up_proj.weight"), b.inner, b.width)
	if down := from("mlp.down_proj.weight"); !l.twice {
		b.take(to("ffn_down.weight"), down, b.width, b.inner)
	} else if b.check(down, 2*b.width, b.inner) {
		b.Halves(to("ffn_down_logits.weight"), to("ffn_down.weight"), down, 0, b.width, b.inner)
	}
}
