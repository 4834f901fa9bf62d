package heads

import (
	"slices"

	"grove/internal/weights/hf"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
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
	hf.FolderSet(b.FolderBuilder, b.Arch+".rope.neox", !b.top.BoolOr("rope_pairs", false))
}

// layer adds the tensors of a decoder layer.
func (b *builder) layer(l layer) {
	to := func(name string) string { return l.to + name }
	from := func(name string) string { return l.from + name }
	if l.norm {
		b.take(to("attn_norm.weight"), from("input_layernorm.weight"), b.width)
	}
	b.projections(l)
	b.take(to("attn_output.weight"), from("self_attn.o_proj.weight"), b.width, b.heads*b.size)
	b.takeIf(to("attn_output.bias"), from("self_attn.o_proj.bias"), b.width)
	b.takeIf(to("attn_q_norm.weight"), from("self_attn.q_norm.weight"), b.size)
	b.takeIf(to("attn_k_norm.weight"), from("self_attn.k_norm.weight"), b.size)
	if l.mlp {
		b.feedForward(l)
	}
}

// projections adds what makes a layer's queries, keys and values: a matrix each, or one whose rows are theirs in this order.
func (b *builder) projections(l layer) {
	const fused = "self_attn.qkv_proj"
	parts := []part{{l.to + "attn_q", b.heads * b.size}, {l.to + "attn_k", b.keys * b.size}, {l.to + "attn_v", b.keys * b.size}}
	if _, ok := b.Weights.Tensor(l.from + fused + ".weight"); ok {
		b.split(l.from+fused+".weight", ".weight", parts, l.inputs)
		if _, ok := b.Weights.Tensor(l.from + fused + ".bias"); ok {
			b.split(l.from+fused+".bias", ".bias", parts)
		}
		return
	}
	for i, from := range []string{"q", "k", "v"} {
		from = l.from + "self_attn." + from + "_proj"
		b.take(parts[i].to+".weight", from+".weight", parts[i].rows, l.inputs)
		b.takeIf(parts[i].to+".bias", from+".bias", parts[i].rows)
	}
}

// part is some rows of a tensor, which become one of their own.
type part struct {
	to   string
	rows int
}

// split adds the parts of a tensor of the file, whose rows have a shape.
func (b *builder) split(from, kind string, parts []part, row ...int) {
	t, _ := b.Weights.Tensor(from)
	b.used[from] = true
	shape := append([]int{0}, row...)
	for _, p := range parts {
		shape[0] += p.rows
	}
	if _, float := safetensors.FloatTypes[t.Type]; !float || !slices.Equal(t.Shape, shape) {
		b.Fail("%s: type is %s and shape %v; it must be F32, F16 or BF16 and %v, the queries', keys' and values' rows", tensor.Label(from), t.Type, t.Shape, shape)
		return
	}
	size, at := len(t.Data)/shape[0], 0
	for _, p := range parts {
		rows := t
		rows.Shape, rows.Data = append([]int{p.rows}, row...), t.Data[at*size:(at+p.rows)*size]
		b.Add(p.to+kind, hf.TypeOf(p.to+kind, t), rows.Shape, func(dst []byte) { fill(dst, p.to+kind, rows) })
		at += p.rows
	}
}

// fill writes a tensor as its type in a file of GGUF.
func fill(dst []byte, to string, t safetensors.Tensor) {
	if hf.TypeOf(to, t) == safetensors.FloatTypes[t.Type] {
		copy(dst, t.Data)
		return
	}
	hf.ToF32(dst, t, 0)
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
