package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("gpt2", openGPT2) }

// gpt2 is GPT-2 (Radford et al. 2019): learned positions, LayerNorm, biases everywhere, and a feed-forward
// block without a gate.
type gpt2 struct {
	info      *model.Info
	head      model.Head
	positions *compute.Matrix // nil: none, as heads rotate
	layers    []gpt2Layer
	norm      model.LayerNorm // final
	activate  func(x *compute.Exec, a compute.Buf) compute.Buf
}

type gpt2Layer struct {
	attnNorm model.LayerNorm
	attn     model.Attention
	ffnNorm  model.LayerNorm
	mlp      model.PlainMLP
}

func openGPT2(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	m := loadGPT2(l, s, nil)
	m.positions = l.Matrix("position_embd.weight", m.info.Context, s.Width)
	for i := range m.layers {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.bias", i, t) }
		l.Need(name("attn_qkv"), name("attn_output"), name("ffn_up"), name("ffn_down"))
	}
	return m
}

// loadGPT2 loads everything but the table of positions; a nil rope is none.
func loadGPT2(l *model.Loader, s model.Hyperparameters, rope *compute.Rope) *gpt2 {
	eps := float32(l.RangeOr("attention.layer_norm_epsilon", 1e-5, 0, 1))
	m := &gpt2{info: l.Info(), head: l.Head(s), norm: l.LayerNorm("output_norm", s.Width, eps), activate: (*compute.Exec).Gelu}
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, gpt2Layer{
			attnNorm: l.LayerNorm(fmt.Sprintf("blk.%d.attn_norm", i), s.Width, eps),
			attn:     l.Attention(s, i, rope),
			ffnNorm:  l.LayerNorm(fmt.Sprintf("blk.%d.ffn_norm", i), s.Width, eps),
			mlp:      l.PlainMLP(s, i),
		})
	}
	return m
}

// Info implements [model.Model].
func (m *gpt2) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *gpt2) Forward(x *compute.Exec) {
	x.Embed(m.head.Embed, 1)
	if m.positions != nil {
		x.Positions(m.positions)
	}
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, l.attn.Forward(x, l.attnNorm.Forward(x, stream)))
		stream = x.Add(stream, l.mlp.Forward(x, l.ffnNorm.Forward(x, stream), m.activate))
		x.Leave(stream)
	}
	if h, ok := x.Outputs(); ok {
		x.Logits(m.norm.Forward(x, h), compute.Projection{Matrix: m.head.Output}, 0)
	}
}
