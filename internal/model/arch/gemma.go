package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("gemma", openGemma) }

// gemma is Gemma 1 (Gemma team 2024), and with norms after each block and the soft caps Gemma 2 and 3:
// embeddings are scaled, heads rotate by halves, and the gate is GELU.
type gemma struct {
	info    *model.Info
	hparams model.Hyperparameters
	head    model.Head
	layers  []gemmaLayer
	softcap float32 // of logits; 0: none
}

type gemmaLayer struct {
	attnNorm, postAttn compute.Vector // postAttn and postFFN are empty in Gemma 1
	attn               model.Attention
	ffnNorm, postFFN   compute.Vector
	mlp                model.MLP
}

func openGemma(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	return loadGemma(l, s, func(i int) gemmaLayer { return gemmaLayer{attn: l.Attention(s, i, rope)} })
}

// loadGemma loads the head, the norms and the feed-forward blocks. layer loads the attention of one layer.
func loadGemma(l *model.Loader, s model.Hyperparameters, layer func(i int) gemmaLayer) *gemma {
	m := &gemma{info: l.Info(), hparams: s, head: l.Head(s)}
	for i := 0; i < s.Layers && l.OK(); i++ {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.weight", i, t) }
		one := layer(i)
		one.attnNorm, one.ffnNorm = l.Vector(name("attn_norm"), s.Width), l.Vector(name("ffn_norm"), s.Width)
		one.mlp = l.MLP(s, i)
		m.layers = append(m.layers, one)
	}
	return m
}

// postNorms loads the norms after the two blocks of a layer.
func (g *gemmaLayer) postNorms(l *model.Loader, s model.Hyperparameters, i int) {
	g.postAttn = l.Vector(fmt.Sprintf("blk.%d.post_attention_norm.weight", i), s.Width)
	g.postFFN = l.Vector(fmt.Sprintf("blk.%d.post_ffw_norm.weight", i), s.Width)
}

// gemmaWideScale returns the scale of attention in the models of 27 B, by width and heads instead of by head size.
// Files show it by their number of layers alone.
func gemmaWideScale(s model.Hyperparameters) float32 {
	return float32(1 / math.Sqrt(float64(s.Width)/float64(s.Heads)))
}

// Info implements [model.Model].
func (m *gemma) Info() *model.Info { return m.info }

// Lend implements [model.Lender].
func (m *gemma) Lend() model.Lent {
	return m.head.Lent(float32(math.Sqrt(float64(m.hparams.Width))), m.hparams.Eps, 1, m.softcap)
}

// Forward implements [model.Model].
func (m *gemma) Forward(x *compute.Exec) {
	eps := m.hparams.Eps
	post := func(b compute.Buf, w compute.Vector) compute.Buf {
		if w.Len() == 0 {
			return b
		}
		return x.RMSNorm(b, w, eps)
	}
	x.Embed(m.head.Embed, float32(math.Sqrt(float64(m.hparams.Width))))
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		a := l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, eps))
		stream = x.Add(stream, post(a, l.postAttn))
		f := l.mlp.Gelu(x, x.RMSNorm(stream, l.ffnNorm, eps))
		stream = x.Add(stream, post(f, l.postFFN))
		x.Leave(stream)
	}
	if h, ok := x.Outputs(); ok {
		x.Logits(x.RMSNorm(h, m.head.Norm, eps), compute.Projection{Matrix: m.head.Output}, m.softcap)
	}
}
