package arch

import (
	"fmt"

	"grove/compute"
	"grove/model"
)

// decoder is the shape that Llama gave to most models (Touvron et al. 2023): a layer norms the stream,
// attends and adds; norms it again, feeds it forward through a SiLU gate, and adds.
type decoder struct {
	info   *model.Info
	shape  model.Hyperparameters
	head   model.Head
	layers []decoderLayer
}

type decoderLayer struct {
	attnNorm compute.Vector
	attn     model.Attention
	ffnNorm  compute.Vector
	mlp      model.MLP     // one of the two
	experts  model.Experts // is there
}

// openDecoder loads the norms, and what layer loads of each layer else.
func openDecoder(l *model.Loader, s model.Hyperparameters, layer func(i int) decoderLayer) model.Model {
	m := &decoder{info: l.Info(), shape: s, head: l.Head(s)}
	for i := 0; i < s.Layers && l.OK(); i++ {
		attnNorm := l.Vector(fmt.Sprintf("blk.%d.attn_norm.weight", i), s.Width)
		one := layer(i)
		one.attnNorm, one.ffnNorm = attnNorm, l.Vector(fmt.Sprintf("blk.%d.ffn_norm.weight", i), s.Width)
		m.layers = append(m.layers, one)
	}
	return m
}

// Info implements [model.Model].
func (m *decoder) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *decoder) Forward(x *compute.Exec) {
	x.Embed(m.head.Embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, m.shape.Eps)))
		h := x.RMSNorm(stream, l.ffnNorm, m.shape.Eps)
		if l.experts.Choice.Used > 0 {
			stream = x.Add(stream, l.experts.Silu(x, h))
		} else {
			stream = x.Add(stream, l.mlp.Silu(x, h))
		}
		x.Leave(stream)
	}
	x.Output(m.head.Norm, m.shape.Eps, m.head.Output)
}
