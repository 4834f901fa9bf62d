package module

import (
	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
)

func init() { model.RegisterModule("fspad", openFSPAD) }

// fspad is EAGLE with two more parts (FSPAD, Gui et al. 2024). Feature sampling: behind the product that joins a token's embedding and a state comes a gated block
// that the embedding alone gates, so that what the state leaves open is decided by the token. Partial alignment: the layer's feed-forward block has two last
// products. One gives the feature that the next draft reads, which was trained to be the target's next state; the other gives what the head reads.
//
// Tensors beside those of EAGLE's one layer: fc.ffn_norm, fc.ffn_gate, fc.ffn_up and fc.ffn_down, the block; blk.0.ffn_down_logits, the product for
// the head. A file has one of both parts, or both.
type fspad struct {
	eagle
	sampleNorm compute.Vector
	sample     model.MLP
	samples    bool
	logits     *compute.Projection // nil: the head reads the feature
}

func openFSPAD(l *model.Loader) model.Model {
	m := &fspad{}
	m.open(l, 1)
	if m.samples = l.Has("fc.ffn_gate.weight"); m.samples {
		m.sampleNorm, m.sample = l.Vector("fc.ffn_norm.weight", m.hp.Width), l.NamedMLP(m.hp, "fc.")
	}
	if p, ok := l.ProjectionIf("blk.0.ffn_down_logits", m.hp.Width, m.hp.FFN); ok {
		m.logits = &p
	}
	if l.OK() && !m.samples && m.logits == nil {
		l.Fail("tensors %q and %q are missing; a module of this family has one of them", "fc.ffn_gate.weight", "blk.0.ffn_down_logits.weight")
	}
	m.info.Module = &forest.Module{Family: "fspad", FeedsState: m.logits == nil}
	return m
}

// Forward implements [model.Model].
func (m *fspad) Forward(x *compute.Exec) {
	width, eps := m.info.Width, m.hp.Eps
	x.EmbedPairs(m.lent.Embed, m.lent.EmbedScale, width, 0)
	if stream, ok := x.Enter(0); ok {
		joined := x.Linear(m.join, x.Join(stream, x.Carried(0, width)))
		if m.samples {
			gate := x.Linear(m.sample.GateUp[0], stream)
			up := x.Linear(m.sample.GateUp[1], x.RMSNorm(joined, m.sampleNorm, eps))
			joined = x.Add(joined, x.Linear(m.sample.Down, x.SiluMul(gate, up)))
		}
		x.CopyHeads(stream, 0, joined, 0, width, 1)
		if m.logits == nil {
			x.Leave(m.layers[0].forward(x, stream, eps))
		} else {
			x.Leave(m.apart(x, stream))
		}
	}
	if h, ok := x.Outputs(); ok {
		if m.logits != nil {
			h = x.Carried(0, width)
		}
		logitsOf(x, h, &m.lent, m.norm, m.own, eps)
	}
}

// apart is the layer whose rows carry what the head reads, and leave the feature.
func (m *fspad) apart(x *compute.Exec, stream compute.Buf) compute.Buf {
	d, eps := &m.layers[0], m.hp.Eps
	h := stream
	if d.attnNorm.Len() > 0 {
		h = x.RMSNorm(stream, d.attnNorm, eps)
	}
	stream = x.Add(stream, d.attn.Forward(x, h))
	both := x.Linears(d.mlp.GateUp, x.RMSNorm(stream, d.ffnNorm, eps))
	inner := x.SiluMul(both[0], both[1])
	x.SetCarried(0, x.Add(x.Linear(*m.logits, inner), stream))
	return x.Add(stream, x.Linear(d.mlp.Down, inner))
}
