package arch

import (
	"fmt"

	"grove/compute"
	"grove/model"
)

// decoder is Llama's layer, which most models share (Touvron et al. 2023): it norms the stream, attends and adds;
// norms it again, runs a gated feed-forward block with SiLU, and adds. Some norm what a block gives before they add it.
type decoder struct {
	info    *model.Info
	hparams model.Hyperparameters
	head    model.Head
	layers  []decoderLayer
}

type decoderLayer struct {
	attnNorm compute.Vector
	attn     model.Attention
	postAttn compute.Vector // norm of what attention gives; empty: none
	ffnNorm  compute.Vector
	mlp      model.MLP      // without experts; of a mixture: the shared experts, if any
	experts  model.Experts  // of a mixture; otherwise Choice.Used is 0
	shared   model.Experts  // one expert that every row runs and weighs; otherwise Choice.Used is 0
	postFFN  compute.Vector // norm of what mlp gives; empty: none
}

// openDecoder loads the head and the norms. layer loads the blocks of one layer, and its second norm where that has
// another name.
func openDecoder(l *model.Loader, s model.Hyperparameters, layer func(i int) decoderLayer) model.Model {
	m := &decoder{info: l.Info(), hparams: s, head: l.Head(s)}
	for i := 0; i < s.Layers && l.OK(); i++ {
		attnNorm := l.Vector(fmt.Sprintf("blk.%d.attn_norm.weight", i), s.Width)
		one := layer(i)
		one.attnNorm = attnNorm
		if one.ffnNorm.Len() == 0 {
			one.ffnNorm = l.Vector(fmt.Sprintf("blk.%d.ffn_norm.weight", i), s.Width)
		}
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
		stream = x.Add(stream, m.post(x, l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, m.hparams.Eps)), l.postAttn))
		h := x.RMSNorm(stream, l.ffnNorm, m.hparams.Eps)
		if l.experts.Choice.Used > 0 {
			stream = x.Add(stream, l.experts.Silu(x, h))
		}
		if l.shared.Choice.Used > 0 {
			stream = x.Add(stream, l.shared.Silu(x, h))
		}
		if l.mlp.GateUp != nil {
			stream = x.Add(stream, m.post(x, l.mlp.Silu(x, h), l.postFFN))
		}
		x.Leave(stream)
	}
	x.Output(m.head.Norm, m.hparams.Eps, m.head.Output)
}

// post norms what a block gives, where the layer has a norm for it.
func (m *decoder) post(x *compute.Exec, b compute.Buf, w compute.Vector) compute.Buf {
	if w.Len() == 0 {
		return b
	}
	return x.RMSNorm(b, w, m.hparams.Eps)
}
