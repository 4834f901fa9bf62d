package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() { model.Register("t5gemma", openT5Gemma) }

// Settings of Gemma 2 that T5Gemma keeps.
const (
	gemmaWindow  = 4096 // of every other layer
	gemmaSoftcap = 50   // of attention
	gemmaFinal   = 30   // of logits
)

// t5Gemma is T5Gemma (Zhang et al. 2025): an encoder and a decoder of Gemma 2's layers, of two sizes and with two tables. Cross
// attention has no rotation and no window, and norms before and after it as the other blocks have. No other program has
// named its tensors in GGUF: the names are those of T5, with enc.token_embd for the encoder's table.
type t5Gemma struct {
	info    *model.Info
	gemma   gemmaPart
	output  *compute.Matrix
	softcap float32 // of logits; 0: none
}

// t5GemmaEncoder is its encoder.
type t5GemmaEncoder struct {
	info  *model.Info
	gemma gemmaPart
}

// gemmaPart is what both parts have.
type gemmaPart struct {
	hparams model.Hyperparameters
	embed   *compute.Matrix
	norm    compute.Vector
	layers  []seq2seqGemmaLayer
}

type seq2seqGemmaLayer struct {
	attn, cross      gemmaAttention
	ffnNorm, ffnPost compute.Vector
	mlp              model.MLP
}

// gemmaAttention is self attention or cross attention with its norms.
type gemmaAttention struct {
	norm, post     compute.Vector
	matrices       projections
	rope           *compute.Rope // nil: none
	heads, kvHeads int
	how            compute.Attention
}

func openT5Gemma(l *model.Loader) model.Model {
	d := l.Hyperparameters()
	needEncoder(l, "enc.output_norm.weight")
	if p := l.Info().Pooling; p > model.PoolNone {
		l.Fail("t5gemma.pooling_type is %d; the model generates", p)
	}
	m := &t5Gemma{info: l.Info()}
	l.Windows(l.CountOr("attention.sliding_window", gemmaWindow, 1, 1<<24), 2)
	s := encoderSize(l, d)
	encoder := &t5GemmaEncoder{info: encoderInfo(l, s)}
	window := l.CountOr("encoder.attention.sliding_window", gemmaWindow, 1, 1<<24)
	for i := range encoder.info.Layers {
		if i%2 == 0 && window < encoder.info.Context {
			encoder.info.Layers[i].Keeps = kv.Window(window)
		}
	}
	for i := range m.info.Layers {
		m.info.Layers[i].Cross = kv.Heads{KVHeads: d.KVHeads, KeySize: d.KeySize, ValueSize: d.ValueSize}
	}
	encoder.gemma.load(l, "enc", s, s.Width, l.Matrix("enc.token_embd.weight", l.Info().Vocabulary, s.Width))
	embed, output := l.Tables(d)
	m.output = output
	m.gemma.load(l, "dec", d, s.Width, embed)
	m.softcap = float32(l.RangeOr("final_logit_softcapping", gemmaFinal, 0, 1e6))
	m.info.Source = &model.Source{Encoder: encoder, Start: start(l, 2), Read: func(x *compute.Exec, layer int, states compute.Buf) {
		m.gemma.layers[layer].cross.matrices.write(x, layer, states)
	}}
	return m
}

// encoderSize returns the encoder's hyperparameters, which are the decoder's where the file gives no others.
func encoderSize(l *model.Loader, d model.Hyperparameters) model.Hyperparameters {
	s := d
	count := func(v *int, name string, most int) { *v = l.CountOr("encoder."+name, *v, 1, most) }
	count(&s.Layers, "block_count", maxLayers)
	count(&s.Width, "embedding_length", 1<<16)
	count(&s.FFN, "feed_forward_length", 1<<18)
	count(&s.Heads, "attention.head_count", 1<<12)
	count(&s.KVHeads, "attention.head_count_kv", 1<<12)
	count(&s.KeySize, "attention.key_length", 1<<12)
	if s.ValueSize = s.KeySize; l.OK() && s.Heads%s.KVHeads != 0 {
		l.Fail("t5gemma.encoder.attention.head_count_kv is %d; it must divide head_count (%d)", s.KVHeads, s.Heads)
	}
	return s
}

// load loads the layers of a part; the cross attention of a decoder reads rows of from values.
func (g *gemmaPart) load(l *model.Loader, part string, s model.Hyperparameters, from int, embed *compute.Matrix) {
	scale, prefix := 1/math.Sqrt(float64(s.KeySize)), ""
	if part == "enc" {
		prefix = "encoder."
	}
	how := compute.Attention{
		Heads: s.Heads, Scale: float32(l.RangeOr(prefix+"attention.scale", scale, 0, 1e3)), Softcap: float32(l.RangeOr("attn_logit_softcapping", gemmaSoftcap, 0, 1e6)),
	}
	rope := l.Rope(s, true)
	g.hparams, g.embed, g.norm = s, embed, l.Vector(part+".output_norm.weight", s.Width)
	for i := 0; i < s.Layers && l.OK(); i++ {
		name := fmt.Sprintf("%s.blk.%d.", part, i)
		vector := func(t string) compute.Vector { return l.Vector(name+t+".weight", s.Width) }
		how.Layer = i
		attention := func(t string, from int) gemmaAttention {
			return gemmaAttention{norm: vector(t + "_norm"), post: vector("post_" + t + "_norm"), matrices: load(l, name+t, s, from), heads: s.Heads, kvHeads: s.KVHeads, how: how}
		}
		layer := seq2seqGemmaLayer{attn: attention("attn", s.Width), ffnNorm: vector("ffn_norm"), ffnPost: vector("post_ffw_norm")}
		layer.attn.rope = rope
		if part == "dec" {
			layer.cross = attention("cross_attn", from)
		}
		layer.mlp = model.MLP{
			GateUp: []compute.Projection{l.Projection(name+"ffn_gate", s.FFN, s.Width), l.Projection(name+"ffn_up", s.FFN, s.Width)},
			Down:   l.Projection(name+"ffn_down", s.Width, s.FFN),
		}
		g.layers = append(g.layers, layer)
	}
}

// Info implements [model.Model].
func (m *t5Gemma) Info() *model.Info { return m.info }

// Info implements [model.Model].
func (m *t5GemmaEncoder) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *t5Gemma) Forward(x *compute.Exec) {
	if h, ok := m.gemma.forward(x); ok {
		x.Logits(h, compute.Projection{Matrix: m.output}, m.softcap)
	}
}

// Forward implements [model.Model].
func (m *t5GemmaEncoder) Forward(x *compute.Exec) {
	if h, ok := m.gemma.forward(x); ok {
		x.States(h)
	}
}

// forward runs the layers, and returns the normed stream of the rows that want an output.
func (g *gemmaPart) forward(x *compute.Exec) (compute.Buf, bool) {
	eps := g.hparams.Eps
	x.Embed(g.embed, float32(math.Sqrt(float64(g.hparams.Width))))
	for i := range g.layers {
		l := &g.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, l.attn.self(x, stream, eps))
		if l.cross.heads > 0 {
			stream = x.Add(stream, l.cross.source(x, stream, eps))
		}
		f := l.mlp.Gelu(x, x.RMSNorm(stream, l.ffnNorm, eps))
		x.Leave(x.Add(stream, x.RMSNorm(f, l.ffnPost, eps)))
	}
	h, ok := x.Outputs()
	if ok {
		h = x.RMSNorm(h, g.norm, eps)
	}
	return h, ok
}

// self returns the addition of self attention.
func (a *gemmaAttention) self(x *compute.Exec, stream compute.Buf, eps float32) compute.Buf {
	qkv := x.Linears(a.matrices.in, x.RMSNorm(stream, a.norm, eps))
	o := x.Attend(a.how, x.Rope(qkv[0], a.heads, a.rope), x.Rope(qkv[1], a.kvHeads, a.rope), qkv[2])
	return x.RMSNorm(x.Linear(a.matrices.out, o), a.post, eps)
}

// source returns the addition of cross attention.
func (a *gemmaAttention) source(x *compute.Exec, stream compute.Buf, eps float32) compute.Buf {
	q := x.Linear(a.matrices.in[0], x.RMSNorm(stream, a.norm, eps))
	return x.RMSNorm(x.Linear(a.matrices.out, x.AttendSource(a.how, q)), a.post, eps)
}
