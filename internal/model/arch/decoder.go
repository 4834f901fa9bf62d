package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

// decoder is Llama's layer, which most models share (Touvron et al. 2023): it norms the stream, attends and adds;
// norms it again, runs a gated feed-forward block with SiLU, and adds. Some norm what a block gives before they add it.
type decoder struct {
	info    *model.Info
	hparams model.Hyperparameters
	head    model.Head
	layers  []decoderLayer
	scales  scales
}

// scales are factors of embeddings, of what a block adds to the stream, and of logits.
type scales struct{ embed, block, logits float32 }

type decoderLayer struct {
	attnNorm compute.Vector
	attn     model.Attention
	postAttn compute.Vector // norm of what attention gives; empty: none
	ffnNorm  compute.Vector
	mlp      model.MLP      // without experts; of a mixture: the shared experts, if any
	plain    model.PlainMLP // instead of mlp, where there is an activation
	activate func(x *compute.Exec, a compute.Buf) compute.Buf
	experts  model.Experts                                    // of a mixture; otherwise Choice.ExpertsPerToken is 0
	shared   model.Experts                                    // one expert that every row runs and weighs; otherwise Choice.ExpertsPerToken is 0
	ffn      func(x *compute.Exec, h compute.Buf) compute.Buf // instead of these, where it is not nil
	postFFN  compute.Vector                                   // norm of what mlp gives; empty: none
}

// openDecoder loads the head and the norms. layer loads the blocks of one layer, and its second norm where that has
// another name.
func openDecoder(l *model.Loader, s model.Hyperparameters, layer func(i int) decoderLayer) *decoder {
	m := &decoder{info: l.Info(), hparams: s, head: l.Head(s), scales: scales{1, 1, 1}}
	whole := func(i int) decoderLayer {
		attnNorm := l.Vector(fmt.Sprintf("blk.%d.attn_norm.weight", i), s.Width)
		one := layer(i)
		one.attnNorm = attnNorm
		if one.ffnNorm.Len() == 0 {
			one.ffnNorm = l.Vector(fmt.Sprintf("blk.%d.ffn_norm.weight", i), s.Width)
		}
		return one
	}
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, whole(i))
	}
	m.info.AttentionShare = attentionShare(s)
	l.Predictors(s, func(i int) model.Block { return &decoderBlock{m, whole(i)} })
	return m
}

// attentionShare returns about how much of the weights of a layer that a row multiplies with its attention has.
func attentionShare(s model.Hyperparameters) float64 {
	attention := (s.Heads + s.KVHeads) * (s.KeySize + s.ValueSize)
	return float64(attention) / float64(attention+3*s.FFN*max(1, s.ExpertsPerToken))
}

// decoderBlock is the layer of a predictor.
type decoderBlock struct {
	m     *decoder
	layer decoderLayer
}

// Forward implements [model.Block].
func (b *decoderBlock) Forward(x *compute.Exec, stream compute.Buf) compute.Buf {
	return b.m.feed(x, &b.layer, b.m.attend(x, &b.layer, stream))
}

// feedForward loads the block of layer i: a mixture where the model has experts, each as wide as a plain block.
func (d *decoderLayer) feedForward(l *model.Loader, s model.Hyperparameters, i int) {
	if s.Experts > 0 {
		d.experts = l.Experts(s, i, s.FFN)
	} else {
		d.mlp = l.FactoredMLP(s, i)
	}
}

// Info implements [model.Model].
func (m *decoder) Info() *model.Info { return m.info }

// Lend implements [model.Lender].
func (m *decoder) Lend() model.Lent {
	return m.head.Lent(m.scales.embed, m.hparams.Eps, m.scales.logits, 0)
}

// Forward implements [model.Model].
func (m *decoder) Forward(x *compute.Exec) {
	x.Embed(m.head.Embed, m.scales.embed)
	for i := range m.layers {
		l := &m.layers[i]
		if stream, ok := x.Enter(i); ok {
			x.Leave(m.attend(x, l, stream))
		}
		if stream, ok := x.EnterFeedForward(i); ok {
			x.Leave(m.feed(x, l, stream))
		}
	}
	if h, ok := x.Outputs(); ok {
		x.ScaledLogits(x.RMSNorm(h, m.head.Norm, m.hparams.Eps), compute.Projection{Matrix: m.head.Output}, m.scales.logits, 0)
	}
}

// attend returns the stream behind a layer's attention part.
func (m *decoder) attend(x *compute.Exec, l *decoderLayer, stream compute.Buf) compute.Buf {
	return m.add(x, stream, l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, m.hparams.Eps)), l.postAttn)
}

// feed returns the stream behind a layer's feed-forward part.
func (m *decoder) feed(x *compute.Exec, l *decoderLayer, stream compute.Buf) compute.Buf {
	h := x.RMSNorm(stream, l.ffnNorm, m.hparams.Eps)
	if l.experts.Choice.ExpertsPerToken > 0 {
		stream = m.add(x, stream, l.experts.Silu(x, h), compute.Vector{})
	}
	if l.shared.Choice.ExpertsPerToken > 0 {
		stream = m.add(x, stream, l.shared.Silu(x, h), compute.Vector{})
	}
	if l.mlp.Loaded() {
		stream = m.add(x, stream, l.mlp.Silu(x, h), l.postFFN)
	}
	if l.ffn != nil {
		stream = m.add(x, stream, l.ffn(x, h), l.postFFN)
	}
	if l.activate != nil {
		stream = m.add(x, stream, l.plain.Forward(x, h, l.activate), l.postFFN)
	}
	return stream
}

// add adds what a block gives to the stream, behind its norm, if any.
func (m *decoder) add(x *compute.Exec, stream, b compute.Buf, norm compute.Vector) compute.Buf {
	if norm.Len() > 0 {
		b = x.RMSNorm(b, norm, m.hparams.Eps)
	}
	return x.AddScaled(stream, m.scales.block, b)
}
