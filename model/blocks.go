package model

import (
	"fmt"
	"math"

	"grove/compute"
)

// Attention is the attention block of a decoder: projections, optional norms of queries and keys, and
// rotation.
type Attention struct {
	Q, K, V, Out              *compute.Matrix
	QBias, KBias, VBias, Bias compute.Vector // optional
	QNorm, KNorm              compute.Vector // optional, of one head
	Rope                      *compute.Rope

	shape Shape
	scale float32
	layer int
}

// Attention loads the block of a layer, with the tensor names of GGUF.
func (l *Loader) Attention(s Shape, layer int, rope *compute.Rope) Attention {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	q, k := s.Heads*s.Size, s.KVHeads*s.Size
	return Attention{
		Q: l.Matrix(name("attn_q.weight"), q, s.Width), QBias: l.VectorIf(name("attn_q.bias"), q),
		K: l.Matrix(name("attn_k.weight"), k, s.Width), KBias: l.VectorIf(name("attn_k.bias"), k),
		V: l.Matrix(name("attn_v.weight"), k, s.Width), VBias: l.VectorIf(name("attn_v.bias"), k),
		Out: l.Matrix(name("attn_output.weight"), s.Width, q), Bias: l.VectorIf(name("attn_output.bias"), s.Width),
		QNorm: l.VectorIf(name("attn_q_norm.weight"), s.Size), KNorm: l.VectorIf(name("attn_k_norm.weight"), s.Size),
		Rope: rope, shape: s, layer: layer, scale: float32(1 / math.Sqrt(float64(s.Size))),
	}
}

// Forward returns the block's addition to the stream; h is the normed stream.
func (a *Attention) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	s := &a.shape
	q, k, v := x.Linear(a.Q, h, a.QBias), x.Linear(a.K, h, a.KBias), x.Linear(a.V, h, a.VBias)
	if a.QNorm.Len() > 0 {
		q = x.NormHeads(q, s.Heads, a.QNorm, s.Eps)
	}
	if a.KNorm.Len() > 0 {
		k = x.NormHeads(k, s.KVHeads, a.KNorm, s.Eps)
	}
	q, k = x.Rope(q, s.Heads, a.Rope), x.Rope(k, s.KVHeads, a.Rope)
	o := x.Attend(compute.Attention{Layer: a.layer, Heads: s.Heads, Scale: a.scale}, q, k, v)
	return x.Linear(a.Out, o, a.Bias)
}

// SetScale replaces the factor on the products of queries and keys, 1/sqrt(size) otherwise.
func (a *Attention) SetScale(scale float32) { a.scale = scale }

// MLP is a gated feed-forward block.
type MLP struct{ Gate, Up, Down *compute.Matrix }

// MLP loads the block of a layer.
func (l *Loader) MLP(s Shape, layer int) MLP {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	return MLP{
		Gate: l.Matrix(name("ffn_gate.weight"), s.FFN, s.Width),
		Up:   l.Matrix(name("ffn_up.weight"), s.FFN, s.Width),
		Down: l.Matrix(name("ffn_down.weight"), s.Width, s.FFN),
	}
}

// Silu returns the block's addition with SiLU as the gate.
func (m *MLP) Silu(x *compute.Exec, h compute.Buf) compute.Buf {
	return x.Linear(m.Down, x.SiluMul(x.Linear(m.Gate, h, compute.Vector{}), x.Linear(m.Up, h, compute.Vector{})), compute.Vector{})
}

// Gelu returns the block's addition with GELU as the gate.
func (m *MLP) Gelu(x *compute.Exec, h compute.Buf) compute.Buf {
	return x.Linear(m.Down, x.GeluMul(x.Linear(m.Gate, h, compute.Vector{}), x.Linear(m.Up, h, compute.Vector{})), compute.Vector{})
}

// Experts is a mixture of gated feed-forward blocks: each row goes to the Used best, weighed by the
// softmax of their router logits, scaled to sum to 1.
type Experts struct {
	Router, Gate, Up, Down *compute.Matrix
	Used                   int
}

// Experts loads the mixture of a layer, whose experts have ffn inner values.
func (l *Loader) Experts(s Shape, layer, ffn int) Experts {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	e := Experts{
		Router: l.Matrix(name("ffn_gate_inp.weight"), s.Experts, s.Width),
		Gate:   l.Stack(name("ffn_gate_exps.weight"), s.Experts, ffn, s.Width),
		Up:     l.Stack(name("ffn_up_exps.weight"), s.Experts, ffn, s.Width),
		Down:   l.Stack(name("ffn_down_exps.weight"), s.Experts, s.Width, ffn),
		Used:   s.Used,
	}
	l.info.Experts, l.info.Used = s.Experts, s.Used
	l.info.ExpertBytes = e.Gate.Bytes() + e.Up.Bytes() + e.Down.Bytes()
	return e
}

// Forward returns the mixture's addition to the stream.
func (e *Experts) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	r := x.Route(x.Linear(e.Router, h, compute.Vector{}), e.Used)
	in := x.Experts(h, r)
	mid := x.SiluMul(x.LinearExperts(e.Gate, in, r), x.LinearExperts(e.Up, in, r))
	return x.MixExperts(x.LinearExperts(e.Down, mid, r), r)
}

// Head is what stands at the two ends of a decoder.
type Head struct {
	Embed, Output *compute.Matrix
	Norm          compute.Vector
}

// Head loads the embedding table, the final norm and the output head; a file without a head ties it to
// the table, which then exists once.
func (l *Loader) Head(s Shape) Head {
	h := Head{Embed: l.Matrix("token_embd.weight", l.info.Vocabulary, s.Width), Norm: l.Vector("output_norm.weight", s.Width)}
	h.Output = h.Embed
	if l.Has("output.weight") {
		h.Output = l.Matrix("output.weight", l.info.Vocabulary, s.Width)
		l.info.TableBytes, l.info.TableParams = h.Embed.Bytes(), h.Embed.Out()*h.Embed.In()
	}
	return h
}
