package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() {
	model.Register("t5", openT5)
	model.Register("t5encoder", openT5Encoder)
}

// Settings of T5 that files of GGUF have no key for.
const (
	t5Reach   = 128 // the distance from which on all keys are in one bucket
	t5Buckets = 32
	t5Start   = 0 // its padding token
)

// t5 is the decoder of T5 (Raffel et al. 2020), and of T5 1.1, Flan-T5, UMT5 and CodeT5+, which have its layers: attention
// without a scale, whose scores have biases by relative position, cross attention without them, RMSNorm before each
// block, and no biases of matrices.
type t5 struct {
	info          *model.Info
	embed, output *compute.Matrix
	layers        []t5Layer
	norm          compute.Vector
	eps           float32
	scale         float32 // of the products with the head
}

// t5Layer is a layer of the decoder, or without cross attention of the encoder.
type t5Layer struct {
	attnNorm, crossNorm, ffnNorm compute.Vector
	attn, cross                  projections
	relative                     *weight.Relative
	gate                         []compute.Projection // with the matrix that it gates; empty: plain is the block
	down                         compute.Projection
	plain                        model.PlainMLP
	heads                        int
}

// t5Encoder is the encoder, whose rows see each other.
type t5Encoder struct {
	info   *model.Info
	embed  *compute.Matrix
	layers []t5Layer
	norm   compute.Vector
	eps    float32
}

func openT5(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needEncoder(l, "enc.output_norm.weight")
	if p := l.Info().Pooling; p > model.PoolNone {
		l.Fail("t5.pooling_type is %d; the model generates, and only t5encoder gives embeddings by itself", p)
	}
	m := &t5{info: l.Info(), eps: s.Eps, scale: 1, embed: l.Matrix("token_embd.weight", l.Info().Vocabulary, s.Width)}
	encoder := loadT5Encoder(l, s, encoderInfo(l, s), m.embed)
	d := s
	d.Layers = l.CountOr("decoder_block_count", s.Layers, 1, maxLayers)
	m.info.Layers = layers(d, kv.Heads{KVHeads: d.KVHeads, KeySize: d.KeySize, ValueSize: d.ValueSize})
	for i := 0; i < d.Layers && l.OK(); i++ {
		name := fmt.Sprintf("dec.blk.%d.", i)
		layer := loadT5Layer(l, d, name, m.layers, false)
		layer.crossNorm = l.Vector(name+"cross_attn_norm.weight", d.Width)
		layer.cross = load(l, name+"cross_attn", d, s.Width)
		m.layers = append(m.layers, layer)
	}
	m.norm = l.Vector("dec.output_norm.weight", s.Width)
	if m.output = m.embed; l.Has("output.weight") {
		m.output = l.Matrix("output.weight", m.info.Vocabulary, s.Width)
	} else {
		m.scale = float32(1 / math.Sqrt(float64(s.Width))) // of a head that is the table (its published code)
	}
	m.info.Source = &model.Source{Encoder: encoder, Start: start(l, t5Start), Read: m.read}
	return m
}

func openT5Encoder(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	l.Info().Encoder = true
	m := loadT5Encoder(l, s, l.Info(), l.Matrix("token_embd.weight", l.Info().Vocabulary, s.Width))
	l.Readouts(model.PoolFirst, model.Tanh)
	return m
}

func loadT5Encoder(l *model.Loader, s model.Hyperparameters, info *model.Info, embed *compute.Matrix) *t5Encoder {
	m := &t5Encoder{info: info, embed: embed, eps: s.Eps}
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, loadT5Layer(l, s, fmt.Sprintf("enc.blk.%d.", i), m.layers, true))
	}
	m.norm = l.Vector("enc.output_norm.weight", s.Width)
	return m
}

// loadT5Layer loads what the layers of both parts have. A layer without biases of its own has those of the first one.
func loadT5Layer(l *model.Loader, s model.Hyperparameters, name string, before []t5Layer, both bool) t5Layer {
	layer := t5Layer{
		attnNorm: l.Vector(name+"attn_norm.weight", s.Width), attn: load(l, name+"attn", s, s.Width),
		ffnNorm: l.Vector(name+"ffn_norm.weight", s.Width), heads: s.Heads,
	}
	if len(before) > 0 && !l.Has(name+"attn_rel_b.weight") {
		layer.relative = before[0].relative
	} else {
		layer.relative = relative(l, name+"attn_rel_b.weight", s.Heads, both)
	}
	up, down := l.Projection(name+"ffn_up", s.FFN, s.Width), l.Projection(name+"ffn_down", s.Width, s.FFN)
	if layer.plain = (model.PlainMLP{Up: up, Down: down}); l.Has(name + "ffn_gate.weight") {
		layer.gate, layer.down = []compute.Projection{l.Projection(name+"ffn_gate", s.FFN, s.Width), up}, down
	}
	return layer
}

// relative loads the biases by relative position, a number for each bucket and head.
func relative(l *model.Loader, name string, heads int, both bool) *weight.Relative {
	buckets := l.CountOr("attention.relative_buckets_count", t5Buckets, 2, 1<<10)
	l.Need(name)
	table := l.StackBiasIf(name, buckets, heads)
	if !l.OK() {
		return nil
	}
	r, err := weight.NewRelative(table, heads, t5Reach, both)
	if err != nil {
		l.Fail("tensor %q: %v", name, err)
	}
	return r
}

// Info implements [model.Model].
func (m *t5) Info() *model.Info { return m.info }

// Info implements [model.Model].
func (m *t5Encoder) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *t5Encoder) Forward(x *compute.Exec) {
	x.Embed(m.embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		if stream, ok := x.Enter(i); ok {
			stream = x.Add(stream, l.attend(x, i, x.RMSNorm(stream, l.attnNorm, m.eps)))
			x.Leave(x.Add(stream, l.feed(x, x.RMSNorm(stream, l.ffnNorm, m.eps))))
		}
	}
	if h, ok := x.Outputs(); ok {
		x.States(x.RMSNorm(h, m.norm, m.eps))
	}
}

// read is the Read of [model.Source].
func (m *t5) read(x *compute.Exec, layer int, states compute.Buf) {
	m.layers[layer].cross.write(x, layer, states)
}

// Forward implements [model.Model].
func (m *t5) Forward(x *compute.Exec) {
	x.Embed(m.embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, l.attend(x, i, x.RMSNorm(stream, l.attnNorm, m.eps)))
		q := x.Linear(l.cross.in[0], x.RMSNorm(stream, l.crossNorm, m.eps))
		o := x.AttendSource(compute.Attention{Layer: i, Heads: l.heads, Scale: 1}, q)
		stream = x.Add(stream, x.Linear(l.cross.out, o))
		x.Leave(x.Add(stream, l.feed(x, x.RMSNorm(stream, l.ffnNorm, m.eps))))
	}
	if h, ok := x.Outputs(); ok {
		x.ScaledLogits(x.RMSNorm(h, m.norm, m.eps), compute.Projection{Matrix: m.output}, m.scale, 0)
	}
}

// attend returns the addition of self attention.
func (l *t5Layer) attend(x *compute.Exec, layer int, h compute.Buf) compute.Buf {
	qkv := x.Linears(l.attn.in, h)
	o := x.Attend(compute.Attention{Layer: layer, Heads: l.heads, Scale: 1, Relative: l.relative}, qkv[0], qkv[1], qkv[2])
	return x.Linear(l.attn.out, o)
}

// feed returns the addition of the feed-forward block: with GELU as a gate, or with ReLU.
func (l *t5Layer) feed(x *compute.Exec, h compute.Buf) compute.Buf {
	if l.gate != nil {
		return x.FeedForward(l.gate, l.down, compute.GeluGate, h)
	}
	return l.plain.Forward(x, h, (*compute.Exec).Relu)
}
