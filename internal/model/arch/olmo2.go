package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/compute/rotary"
	"grove/internal/model"
)

func init() { model.Register("olmo2", openOlmo2) }

// olmo2 is OLMo 2 and 3 (Allen Institute for AI 2024, 2025): norms come after the blocks instead of before
// them, and queries and keys are normed over all heads together. OLMo 3 has a sliding window in
// three of four layers, which rotate without scaling.
type olmo2 struct {
	info    *model.Info
	hparams model.Hyperparameters
	head    model.Head
	layers  []olmo2Layer
}

type olmo2Layer struct {
	attn              model.Attention
	mlp               model.MLP
	postAttn, postFFN compute.Vector
}

// olmo2Period is the number of layers from one without a window to the next, where there are windows.
const olmo2Period = 4

func openOlmo2(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	windowed := l.Windows(l.CountOr("attention.sliding_window", 0, 0, 1<<24), olmo2Period)
	global := l.Rope(s, true)
	local := l.NewRope(rotary.Config{
		Dims: s.KeySize, NeoX: true, Base: l.FloatOr("rope.freq_base_swa", l.FloatOr("rope.freq_base", 10000)),
	})
	return loadOlmo2(l, s, func(i int) model.Attention {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.weight", i, t) }
		rope := global
		if windowed[i] {
			rope = local
		}
		a := l.Attention(s, i, rope)
		a.QNorm = l.Vector(name("attn_q_norm"), s.Heads*s.KeySize)
		a.KNorm = l.Vector(name("attn_k_norm"), s.KVHeads*s.KeySize)
		return a
	})
}

// loadOlmo2 loads the head, the norms and the feed-forward blocks. attention loads the attention of one layer.
func loadOlmo2(l *model.Loader, s model.Hyperparameters, attention func(i int) model.Attention) *olmo2 {
	m := &olmo2{info: l.Info(), hparams: s, head: l.Head(s)}
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, olmo2Layer{
			attn: attention(i), mlp: l.MLP(s, i),
			postAttn: l.Vector(fmt.Sprintf("blk.%d.post_attention_norm.weight", i), s.Width),
			postFFN:  l.Vector(fmt.Sprintf("blk.%d.post_ffw_norm.weight", i), s.Width),
		})
	}
	return m
}

// Info implements [model.Model].
func (m *olmo2) Info() *model.Info { return m.info }

// Lend implements [model.Lender].
func (m *olmo2) Lend() model.Lent {
	return m.head.Lent(1, m.hparams.Eps, 1, 0)
}

// Forward implements [model.Model].
func (m *olmo2) Forward(x *compute.Exec) {
	eps := m.hparams.Eps
	x.Embed(m.head.Embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, x.RMSNorm(l.attn.Forward(x, stream), l.postAttn, eps))
		stream = x.Add(stream, x.RMSNorm(l.mlp.Silu(x, stream), l.postFFN, eps))
		x.Leave(stream)
	}
	x.Output(m.head.Norm, eps, m.head.Output)
}
