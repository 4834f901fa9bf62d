package arch

import (
	"fmt"

	"grove/compute"
	"grove/model"
)

func init() { model.Register("qwen3moe", openQwen3MoE) }

// qwen3moe is Qwen 3 with a mixture of experts in every layer (Qwen team 2025): queries and keys are
// normed head by head before they rotate by halves.
type qwen3moe struct {
	info   *model.Info
	shape  model.Shape
	head   model.Head
	layers []qwen3moeLayer
}

type qwen3moeLayer struct {
	attnNorm compute.Vector
	attn     model.Attention
	ffnNorm  compute.Vector
	experts  model.Experts
}

func openQwen3MoE(l *model.Loader) model.Model {
	s := l.Shape()
	if s.Experts == 0 {
		l.Fail("qwen3moe.expert_count is 0 or missing")
	}
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	m := &qwen3moe{info: l.Info(), shape: s}
	rope := l.Rope(s, true)
	m.head = l.Head(s)
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, qwen3moeLayer{
			attnNorm: l.Vector(fmt.Sprintf("blk.%d.attn_norm.weight", i), s.Width),
			attn:     l.Attention(s, i, rope),
			ffnNorm:  l.Vector(fmt.Sprintf("blk.%d.ffn_norm.weight", i), s.Width),
			experts:  l.Experts(s, i, ffn),
		})
	}
	return m
}

// Info implements [model.Model].
func (m *qwen3moe) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *qwen3moe) Forward(x *compute.Exec) {
	x.Embed(m.head.Embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, m.shape.Eps)))
		stream = x.Add(stream, l.experts.Silu(x, x.RMSNorm(stream, l.ffnNorm, m.shape.Eps)))
		x.Leave(stream)
	}
	x.Output(m.head.Norm, m.shape.Eps, m.head.Output)
}
