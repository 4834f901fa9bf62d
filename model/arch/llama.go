// Package arch holds the architectures, one file each. Importing it registers them all.
package arch

import (
	"fmt"

	"grove/compute"
	"grove/model"
)

func init() { model.Register("llama", openLlama) }

// llama is Llama 1 to 3 and the models of its shape, Mixtral's mixture of experts among them (Touvron
// et al. 2023; Jiang et al. 2024). Heads rotate by adjacent pairs.
type llama struct {
	info   *model.Info
	shape  model.Shape
	head   model.Head
	layers []llamaLayer
}

type llamaLayer struct {
	attnNorm compute.Vector
	attn     model.Attention
	ffnNorm  compute.Vector
	mlp      model.MLP     // one of the two
	experts  model.Experts // is there
}

func openLlama(l *model.Loader) model.Model {
	s := l.Shape()
	m := &llama{info: l.Info(), shape: s}
	rope := l.Rope(s, false)
	m.head = l.Head(s)
	for i := 0; i < s.Layers && l.OK(); i++ {
		layer := llamaLayer{
			attnNorm: l.Vector(fmt.Sprintf("blk.%d.attn_norm.weight", i), s.Width),
			attn:     l.Attention(s, i, rope),
			ffnNorm:  l.Vector(fmt.Sprintf("blk.%d.ffn_norm.weight", i), s.Width),
		}
		if s.Experts > 0 {
			layer.experts = l.Experts(s, i, s.FFN)
		} else {
			layer.mlp = l.MLP(s, i)
		}
		m.layers = append(m.layers, layer)
	}
	return m
}

// Info implements [model.Model].
func (m *llama) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *llama) Forward(x *compute.Exec) {
	x.Embed(m.head.Embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, m.shape.Eps)))
		h := x.RMSNorm(stream, l.ffnNorm, m.shape.Eps)
		if m.shape.Experts > 0 {
			stream = x.Add(stream, l.experts.Silu(x, h))
		} else {
			stream = x.Add(stream, l.mlp.Silu(x, h))
		}
		x.Leave(stream)
	}
	x.Output(m.head.Norm, m.shape.Eps, m.head.Output)
}
