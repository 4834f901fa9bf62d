package model

import (
	"fmt"
	"math"
	"strings"

	"grove/internal/compute"
)

// Attention is the attention block of a layer: projections, optional norms of queries and keys, and rotation.
// An architecture changes its fields between loading and the first step.
type Attention struct {
	QKV           []compute.Projection // queries, keys, values; and a gate, whose sigmoid multiplies what the heads give: by value, or by head
	Out           compute.Projection
	QNorm, KNorm  compute.Vector // of one head, or of all heads as one vector; empty: none
	Centered      bool           // these norms are LayerNorm of each head, with weights for all heads
	NormAfterRope bool           // the norms come after the rotation
	Limit         float32        // of queries, keys and values; 0: none
	Rope          *compute.Rope  // nil: none
	Temperature   float32        // of queries, by each TemperLength positions; 0: none
	TemperLength  int
	TemperFirst   int            // what positions count from, for the temperature
	Scale         float32        // of the products of queries and keys
	Softcap       float32        // of the scaled products; 0: none
	Sinks         compute.Vector // a logit for each head; empty: none
	Gain          float32        // multiplies what the block gives; 0: 1

	// Where QueryNorm is not empty, the first of QKV gives a shorter row, of which this norm and QueryUp make the queries.
	QueryNorm compute.Vector
	QueryUp   compute.Projection

	hparams Hyperparameters
	number  int // of the layer in the file
	layer   int // of the cache
}

// Attention loads the attention block of a layer by the tensor names of GGUF: queries, keys and values in three
// tensors or in one, with the biases that the file has, without norms. The scale is 1/sqrt(size).
func (l *Loader) Attention(s Hyperparameters, layer int, rope *compute.Rope) Attention {
	return l.AttentionOf(s, layer, s.Width, rope)
}

// AttentionOf is [Loader.Attention] of a layer whose queries, keys and values are made of rows of width values, not of the stream's.
func (l *Loader) AttentionOf(s Hyperparameters, layer, width int, rope *compute.Rope) Attention {
	return l.attention(s, fmt.Sprintf("blk.%d.", layer), layer, width, rope)
}

// NamedAttention is [Loader.Attention] of a layer whose tensors have another prefix than blk.N.
func (l *Loader) NamedAttention(s Hyperparameters, prefix string, layer int, rope *compute.Rope) Attention {
	return l.attention(s, prefix, layer, s.Width, rope)
}

func (l *Loader) attention(s Hyperparameters, prefix string, layer, width int, rope *compute.Rope) Attention {
	name := func(t string) string { return prefix + t }
	q, k, v := s.Heads*s.KeySize, s.KVHeads*s.KeySize, s.KVHeads*s.ValueSize
	a := Attention{Rope: rope, Scale: float32(1 / math.Sqrt(float64(s.KeySize))), hparams: s, number: layer, layer: l.place(layer)}
	if l.Has(name("attn_qkv.weight")) {
		a.QKV = l.Projections(name("attn_qkv"), width, q, k, v)
	} else {
		a.QKV = []compute.Projection{
			l.Projection(name("attn_q"), q, width), l.Projection(name("attn_k"), k, width), l.Projection(name("attn_v"), v, width),
		}
	}
	a.Out = l.Projection(name("attn_output"), s.Width, s.Heads*s.ValueSize)
	return a
}

// FactoredAttention loads the block of a layer of Step-3 (multi-matrix factorization attention; Hu et al. 2024, section 3): a
// short row that all heads share makes, behind a norm, the queries of each.
func (l *Loader) FactoredAttention(s Hyperparameters, layer, rank int, rope *compute.Rope) Attention {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	return Attention{
		Rope: rope, Scale: float32(1 / math.Sqrt(float64(s.KeySize))), hparams: s, number: layer, layer: l.place(layer),
		QKV: []compute.Projection{
			l.Projection(name("attn_q_a"), rank, s.Width), l.Projection(name("attn_k"), s.KVHeads*s.KeySize, s.Width), l.Projection(name("attn_v"), s.KVHeads*s.ValueSize, s.Width),
		},
		QueryNorm: l.Vector(name("attn_q_a_norm.weight"), rank), QueryUp: l.Projection(name("attn_q_b"), s.Heads*s.KeySize, rank),
		Out: l.Projection(name("attn_output"), s.Width, s.Heads*s.ValueSize),
	}
}

// GatedAttention loads the attention block of Qwen 3 Next (Qwen team 2025): the tensor of queries has those of each head and
// then its gate, and queries and keys are normed head by head.
func (l *Loader) GatedAttention(s Hyperparameters, layer int, rope *compute.Rope) Attention {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	a := Attention{Rope: rope, Scale: float32(1 / math.Sqrt(float64(s.KeySize))), hparams: s, number: layer, layer: l.place(layer)}
	queries, gates, k, v := make([]Rows, s.Heads), make([]Rows, s.Heads), s.KVHeads*s.KeySize, s.KVHeads*s.ValueSize
	for h := range queries {
		queries[h], gates[h] = Rows{2 * h * s.KeySize, s.KeySize}, Rows{(2*h + 1) * s.KeySize, s.KeySize}
	}
	if q := 2 * s.Heads * s.KeySize; l.Has(name("attn_qkv.weight")) {
		a.QKV = l.Gather(name("attn_qkv"), q+k+v, s.Width, queries, []Rows{{q, k}}, []Rows{{q + k, v}}, gates)
	} else {
		both := l.Gather(name("attn_q"), q, s.Width, queries, gates)
		a.QKV = []compute.Projection{both[0], l.Projection(name("attn_k"), k, s.Width), l.Projection(name("attn_v"), v, s.Width), both[1]}
	}
	a.Out = l.Projection(name("attn_output"), s.Width, s.Heads*s.ValueSize)
	l.HeadNorms(&a)
	return a
}

// CenterHeads loads the norms of queries and keys, LayerNorm of each head with its own weights, where the file has them.
func (l *Loader) CenterHeads(a *Attention) {
	s := &a.hparams
	a.Centered = true
	a.QNorm = l.StackBiasIf(fmt.Sprintf("blk.%d.attn_q_norm.weight", a.number), s.Heads, s.KeySize)
	a.KNorm = l.StackBiasIf(fmt.Sprintf("blk.%d.attn_k_norm.weight", a.number), s.KVHeads, s.KeySize)
}

// HeadNorms loads the norms of queries and keys, head by head.
func (l *Loader) HeadNorms(a *Attention) {
	a.QNorm = l.Vector(fmt.Sprintf("blk.%d.attn_q_norm.weight", a.number), a.hparams.KeySize)
	a.KNorm = l.Vector(fmt.Sprintf("blk.%d.attn_k_norm.weight", a.number), a.hparams.KeySize)
}

// Forward returns the block's addition to the stream; h is the stream, normed if the model does.
func (a *Attention) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	s := &a.hparams
	qkv := x.Linears(a.QKV, h)
	q, k, v := qkv[0], qkv[1], qkv[2]
	if a.QueryNorm.Len() > 0 {
		q = x.Linear(a.QueryUp, x.RMSNorm(q, a.QueryNorm, s.Eps))
	}
	var gate compute.Buf
	gated := len(qkv) > 3
	if gated {
		gate = x.Sigmoid(qkv[3])
	}
	if a.Limit > 0 {
		q, k, v = x.Limit(q, a.Limit), x.Limit(k, a.Limit), x.Limit(v, a.Limit)
	}
	if !a.NormAfterRope {
		q, k = a.norm(x, q, s.Heads, a.QNorm), a.norm(x, k, s.KVHeads, a.KNorm)
	}
	if a.Rope != nil {
		q, k = x.Rope(q, s.Heads, a.Rope), x.Rope(k, s.KVHeads, a.Rope)
	}
	if a.NormAfterRope {
		q, k = a.norm(x, q, s.Heads, a.QNorm), a.norm(x, k, s.KVHeads, a.KNorm)
	}
	if a.Temperature > 0 {
		q = x.Temper(q, a.Temperature, a.TemperLength, a.TemperFirst)
	}
	o := x.Attend(compute.Attention{Layer: a.layer, Heads: s.Heads, Scale: a.Scale, Softcap: a.Softcap, Sinks: a.Sinks}, q, k, v)
	switch {
	case !gated:
	case a.QKV[3].Matrix.Out() == s.Heads:
		o = x.MulHeads(o, gate)
	default:
		o = x.Mul(o, gate)
	}
	if o = x.Linear(a.Out, o); a.Gain != 0 {
		o = x.Scale(o, a.Gain)
	}
	return o
}

// norm norms queries or keys, where there is a norm for them.
func (a *Attention) norm(x *compute.Exec, h compute.Buf, heads int, w compute.Vector) compute.Buf {
	switch n := w.Len(); {
	case n == 0:
		return h
	case a.Centered:
		return x.CenterHeads(h, heads, w, a.hparams.Eps)
	default:
		return x.NormHeads(h, heads*a.hparams.KeySize/n, w, a.hparams.Eps)
	}
}

// LayerNorm is a norm that centres a row, with a weight and a bias.
type LayerNorm struct {
	Weight, Bias compute.Vector
	Eps          float32
}

// LayerNorm loads the norm of a name, of n values.
func (l *Loader) LayerNorm(name string, n int, eps float32) LayerNorm {
	return LayerNorm{Weight: l.Vector(name+".weight", n), Bias: l.Vector(name+".bias", n), Eps: eps}
}

// Forward returns the normed rows.
func (n *LayerNorm) Forward(x *compute.Exec, a compute.Buf) compute.Buf {
	return x.LayerNorm(a, n.Weight, n.Bias, n.Eps)
}

// Stream norms the stream in place.
func (n *LayerNorm) Stream(x *compute.Exec, stream compute.Buf) compute.Buf {
	return x.NormStream(stream, n.Weight, n.Bias, n.Eps)
}

// MLP is a gated feed-forward block.
type MLP struct {
	GateUp []compute.Projection
	Down   compute.Projection
	Clamp  float32 // SiLU of the gate is at most this, and the other factor within it; 0: none

	factored *factoredMLP // in place of the matrices; nil: there are none
}

// MLP loads the block of a layer.
func (l *Loader) MLP(s Hyperparameters, layer int) MLP {
	return l.NamedMLP(s, fmt.Sprintf("blk.%d.", layer))
}

// NamedMLP is [Loader.MLP] of a layer whose tensors have another prefix than blk.N.
func (l *Loader) NamedMLP(s Hyperparameters, prefix string) MLP {
	return MLP{
		GateUp: []compute.Projection{l.Projection(prefix+"ffn_gate", s.FFN, s.Width), l.Projection(prefix+"ffn_up", s.FFN, s.Width)},
		Down:   l.Projection(prefix+"ffn_down", s.Width, s.FFN),
	}
}

// SharedMLP loads the shared experts of a layer, one block of ffn inner values that every row runs.
func (l *Loader) SharedMLP(s Hyperparameters, layer, ffn int) MLP {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s_shexp", layer, t) }
	return MLP{
		GateUp: []compute.Projection{l.Projection(name("ffn_gate"), ffn, s.Width), l.Projection(name("ffn_up"), ffn, s.Width)},
		Down:   l.Projection(name("ffn_down"), s.Width, ffn),
	}
}

// FusedMLP loads the block of a layer whose tensor ffn_up is the gate and then the matrix that it gates.
func (l *Loader) FusedMLP(s Hyperparameters, layer int) MLP {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	return MLP{
		GateUp: l.Projections(name("ffn_up"), s.Width, s.FFN, s.FFN),
		Down:   l.Projection(name("ffn_down"), s.Width, s.FFN),
	}
}

// Silu returns the block's addition with SiLU as the gate.
func (m *MLP) Silu(x *compute.Exec, h compute.Buf) compute.Buf {
	if f := m.factored; f != nil {
		return f.down.Forward(x, x.SiluMul(f.gated(x, h)))
	}
	if m.Clamp > 0 {
		p := x.Linears(m.GateUp, h)
		return x.Linear(m.Down, siluClamped(x, p[0], p[1], m.Clamp))
	}
	return x.FeedForward(m.GateUp, m.Down, compute.SiluGate, h)
}

// Gelu returns the block's addition with GELU as the gate.
func (m *MLP) Gelu(x *compute.Exec, h compute.Buf) compute.Buf {
	if f := m.factored; f != nil {
		return f.down.Forward(x, x.GeluMul(f.gated(x, h)))
	}
	return x.FeedForward(m.GateUp, m.Down, compute.GeluGate, h)
}

// PlainMLP is a feed-forward block without a gate.
type PlainMLP struct {
	Up, Down compute.Projection
}

// PlainMLP loads the block of a layer.
func (l *Loader) PlainMLP(s Hyperparameters, layer int) PlainMLP {
	return PlainMLP{
		Up:   l.Projection(fmt.Sprintf("blk.%d.ffn_up", layer), s.FFN, s.Width),
		Down: l.Projection(fmt.Sprintf("blk.%d.ffn_down", layer), s.Width, s.FFN),
	}
}

// Gelu returns the block's addition with GELU between its matrices.
func (m *PlainMLP) Gelu(x *compute.Exec, h compute.Buf) compute.Buf {
	return m.Forward(x, h, (*compute.Exec).Gelu)
}

// Forward returns the block's addition with an activation between its matrices.
func (m *PlainMLP) Forward(x *compute.Exec, h compute.Buf, activate func(x *compute.Exec, a compute.Buf) compute.Buf) compute.Buf {
	return x.Linear(m.Down, activate(x, x.Linear(m.Up, h)))
}

// Experts is a mixture of gated feed-forward blocks, of which a router chooses some for each row.
type Experts struct {
	Router         compute.Projection
	Choice         compute.Router
	Gate, Up, Down compute.Projection
	Clamp          float32 // as that of [MLP]
	WeighInputs    bool    // the weight of an expert multiplies what it reads instead of what it gives
	joined         bool    // Gate is both the gate and the matrix that it gates; Up is empty
}

// Experts loads the mixture of a layer, whose experts have ffn inner values, with the gate and the matrix that it gates
// in two tensors or in one. The weights of the chosen experts sum to 1.
func (l *Loader) Experts(s Hyperparameters, layer, ffn int) Experts {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	stack := func(t string, out, in int) compute.Projection {
		p := compute.Projection{Matrix: l.Stack(name(t+".weight"), s.Experts, out, in), Bias: l.StackBiasIf(name(t+".bias"), s.Experts, out)}
		l.adapts(name(t+".weight"), p.Matrix)
		return p
	}
	e := Experts{
		Router: l.Projection(name("ffn_gate_inp"), s.Experts, s.Width),
		Choice: compute.Router{ExpertsPerToken: s.ExpertsPerToken, Norm: true},
		Down:   stack("ffn_down_exps", s.Width, ffn),
		joined: l.Has(name("ffn_gate_up_exps.weight")),
	}
	if e.joined {
		e.Gate = stack("ffn_gate_up_exps", 2*ffn, s.Width)
		l.NoteMixture(s, layer, e.Gate.Matrix.Bytes()+e.Down.Matrix.Bytes())
		return e
	}
	e.Gate, e.Up = stack("ffn_gate_exps", ffn, s.Width), stack("ffn_up_exps", ffn, s.Width)
	l.NoteMixture(s, layer, e.Gate.Matrix.Bytes()+e.Up.Matrix.Bytes()+e.Down.Matrix.Bytes())
	return e
}

// NoteMixture notes the mixture of a layer, whose experts take so many bytes each, in the model's description. Those of
// predictors are no part of a step.
func (l *Loader) NoteMixture(s Hyperparameters, layer, bytes int) {
	i := l.info
	if i.Experts, i.ExpertsPerToken, i.ExpertBytes = s.Experts, s.ExpertsPerToken, bytes; layer < len(i.Layers) {
		i.Mixtures++
	}
}

// SharedExpert loads the shared expert of a layer, of ffn inner values, which each row weighs by the sigmoid of a
// product: a mixture of one expert.
func (l *Loader) SharedExpert(s Hyperparameters, layer, ffn int) Experts {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s_shexp", layer, t) }
	stack := func(t string, out, in int) compute.Projection {
		p := compute.Projection{Matrix: l.Stack(name(t)+".weight", 1, out, in)}
		l.adapts(name(t)+".weight", p.Matrix)
		return p
	}
	return Experts{
		Router: l.Projection(name("ffn_gate_inp"), 1, s.Width), Choice: compute.Router{ExpertsPerToken: 1, Sigmoid: true},
		Gate: stack("ffn_gate", ffn, s.Width), Up: stack("ffn_up", ffn, s.Width), Down: stack("ffn_down", s.Width, ffn),
	}
}

// Router reads the file's settings of how experts are chosen and weighed.
func (l *Loader) Router(s Hyperparameters) compute.Router {
	const unset, softmax, sigmoid = 0, 1, 2
	r := compute.Router{
		ExpertsPerToken: s.ExpertsPerToken, Norm: l.BoolOr("expert_weights_norm", false), Scale: float32(l.RangeOr("expert_weights_scale", 1, 0, 1e4)),
		Groups: l.CountOr("expert_group_count", 0, 0, s.Experts), GroupsUsed: l.CountOr("expert_group_used_count", 0, 0, s.Experts),
	}
	switch f := l.CountOr("expert_gating_func", unset, 0, 1<<16); f {
	case unset, softmax:
	case sigmoid:
		r.Sigmoid = true
	default:
		l.fail("%s is %d; 1 (softmax) and 2 (sigmoid) are supported", l.key("expert_gating_func"), f)
	}
	if r.Groups > 1 && l.err == nil {
		size := s.Experts / r.Groups
		if s.Experts%r.Groups != 0 || r.GroupsUsed < 1 || r.GroupsUsed > r.Groups || r.ExpertsPerToken > r.GroupsUsed*size {
			l.fail("%d experts of a row from %d of %d groups; %d experts must divide into the groups, and the used groups must hold the row's experts", r.ExpertsPerToken, r.GroupsUsed, r.Groups, s.Experts)
		}
	}
	return r
}

// Silu returns the mixture's addition to the stream with SiLU as the gate.
func (e *Experts) Silu(x *compute.Exec, h compute.Buf) compute.Buf {
	return e.mix(x, h, h, (*compute.Exec).SiluMul)
}

// siluClamped returns min(silu(gate), limit) times up, which is brought within ±limit (Step 3.5, StepFun 2026). SiLU is never below
// -0.28, so that limits above that bound it from above alone.
func siluClamped(x *compute.Exec, gate, up compute.Buf, limit float32) compute.Buf {
	return x.Mul(x.Limit(x.Silu(gate), limit), x.Limit(up, limit))
}

// Clamped returns the mixture's addition to the stream with the gate of gpt-oss.
func (e *Experts) Clamped(x *compute.Exec, h compute.Buf) compute.Buf {
	return e.mix(x, h, h, (*compute.Exec).ClampedSwiGLU)
}

// Gelu returns the mixture's addition with GELU as the gate, for experts that read h and a router that reads route.
func (e *Experts) Gelu(x *compute.Exec, h, route compute.Buf) compute.Buf {
	return e.mix(x, h, route, (*compute.Exec).GeluMul)
}

func (e *Experts) mix(x *compute.Exec, h, route compute.Buf, gate func(x *compute.Exec, gate, up compute.Buf) compute.Buf) compute.Buf {
	r := x.Route(x.Linear(e.Router, route), &e.Choice)
	in := x.Experts(h, r)
	if e.WeighInputs {
		in = x.WeighExperts(in, r)
	}
	g := x.LinearExperts(e.Gate, in, r)
	var u compute.Buf
	if e.joined {
		both, ffn := g, e.Gate.Matrix.Out()/2
		g = x.CopyHeads(x.Buffer(both, ffn), 0, both, 0, ffn, 1)
		u = x.CopyHeads(x.Buffer(both, ffn), 0, both, ffn, ffn, 1)
	} else {
		u = x.LinearExperts(e.Up, in, r)
	}
	if e.Clamp > 0 {
		g = siluClamped(x, g, u, e.Clamp)
	} else {
		g = gate(x, g, u)
	}
	return x.MixExperts(x.LinearExperts(e.Down, g, r), r)
}

// Head is the embedding table, the final norm and the output matrix of a decoder.
type Head struct {
	Embed, Output *compute.Matrix
	Norm          compute.Vector
}

// Head loads the embedding table, the final norm and the output matrix.
func (l *Loader) Head(s Hyperparameters) Head {
	embed, output := l.Tables(s)
	return Head{Embed: embed, Output: output, Norm: l.Vector("output_norm.weight", s.Width)}
}

// Lent returns what a model with the head lends, by the scales of its embeddings and logits, the epsilon of its norm and its soft cap.
func (h *Head) Lent(embedScale, eps, logitScale, softcap float32) Lent {
	return Lent{Embed: h.Embed, EmbedScale: embedScale, Norm: h.Norm, Eps: eps, Head: compute.Projection{Matrix: h.Output}, Scale: logitScale, Softcap: softcap}
}

// LookupTable loads a table of rows that are looked up and not multiplied.
func (l *Loader) LookupTable(name string, rows, width int) *compute.Matrix {
	m := l.Matrix(name, rows, width)
	l.idle(m.Bytes(), m.Out()*m.In())
	return m
}

// Tables loads the embedding table and the output matrix. A file without an output matrix ties it to the table, which
// is then stored once. Where the file says that tokens see each other, the model is an encoder; a Qwen 3 may have the head of a reranker,
// which reads the last state and gives probabilities.
func (l *Loader) Tables(s Hyperparameters) (embed, output *compute.Matrix) {
	l.info.Encoder = !l.BoolOr("attention.causal", true)
	if strings.HasPrefix(l.info.Arch, "qwen3") || l.info.Pooling == PoolRank {
		l.Rank(PoolLast, Linear)
	}
	if r := l.info.Rank; r != nil {
		r.Softmax = true
	}
	embed = l.Matrix("token_embd.weight", l.info.Vocabulary, s.Width)
	l.looksUp("token_embd.weight", embed)
	if !l.Has("output.weight") {
		return embed, embed
	}
	output = l.Matrix("output.weight", l.info.Vocabulary, s.Width)
	l.adapts("output.weight", output)
	l.idle(embed.Bytes(), embed.Out()*embed.In())
	return embed, output
}
