package module

import (
	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
)

func init() { model.RegisterModule("kangaroo", openKangaroo) }

// kangaroo is an adapter behind the target's first layers (Kangaroo, Liu et al. 2024, section 3.1): attention without a feed-forward block, a norm, and the
// target's head. A row has the stream behind these layers as its vector, and no token.
type kangaroo struct {
	info           *model.Info
	hp             model.Hyperparameters
	lent           model.Lent
	attnNorm, norm compute.Vector
	attn           model.Attention
}

func openKangaroo(l *model.Loader) model.Model {
	s := l.ModuleHyperparameters(1, true)
	exit := l.Count("exit_layer", 1, max(1, len(l.Target().Layers)-1))
	l.KeepsKeys(s, 0)
	m := &kangaroo{
		info: l.Info(), hp: s, lent: l.Lent(), attnNorm: l.Vector("blk.0.attn_norm.weight", s.Width), norm: l.Vector("output_norm.weight", s.Width),
		attn: l.Attention(s, 0, l.Rope(s, l.BoolOr("rope.neox", true))),
	}
	m.info.Module = &forest.Module{Family: "kangaroo", Taps: []int{exit}}
	return m
}

// Info implements [model.Model].
func (m *kangaroo) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *kangaroo) Forward(x *compute.Exec) {
	x.Embed(m.lent.Embed, m.lent.EmbedScale)
	if stream, ok := x.Enter(0); ok {
		x.Leave(x.Add(stream, m.attn.Forward(x, x.RMSNorm(stream, m.attnNorm, m.hp.Eps))))
	}
	headOf(x, &m.lent, m.norm, nil, m.hp.Eps)
}
