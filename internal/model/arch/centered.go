package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

// centered is a decoder with LayerNorm, whose blocks follow each other as in GPT-2, or both read the stream that enters
// the layer and add to it together, as in GPT-J (Wang and Komatsuzaki 2021).
type centered struct {
	info     *model.Info
	embed    *compute.Matrix
	layers   []centeredLayer
	parallel bool
	normed   func(n *model.LayerNorm, x *compute.Exec, a compute.Buf) compute.Buf // what norms compute
	norm     model.LayerNorm                                                      // final
	output   compute.Projection
	scale    float32 // of logits
}

type centeredLayer struct {
	attnNorm model.LayerNorm
	attn     model.Attention
	ffnNorm  *model.LayerNorm // nil: the feed-forward block reads what attention reads
	ffn      func(x *compute.Exec, h compute.Buf) compute.Buf
}

// centeredHyperparameters reads the shared hyperparameters, with the epsilon of LayerNorm.
func centeredHyperparameters(l *model.Loader) model.Hyperparameters {
	s := l.Hyperparameters()
	s.Eps = float32(l.RangeOr("attention.layer_norm_epsilon", 1e-5, 0, 1))
	return s
}

// openCentered loads the tables. layer loads one layer.
func openCentered(l *model.Loader, s model.Hyperparameters, norm model.LayerNorm, layer func(i int) centeredLayer) *centered {
	m := &centered{info: l.Info(), normed: (*model.LayerNorm).Forward, norm: norm, scale: 1}
	m.embed, m.output.Matrix = l.Tables(s)
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, layer(i))
	}
	return m
}

// Info implements [model.Model].
func (m *centered) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *centered) Forward(x *compute.Exec) {
	x.Embed(m.embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		h := m.normed(&l.attnNorm, x, stream)
		attn := l.attn.Forward(x, h)
		if !m.parallel {
			stream = x.Add(stream, attn)
		}
		if l.ffnNorm != nil {
			h = m.normed(l.ffnNorm, x, stream)
		}
		ffn := l.ffn(x, h)
		if m.parallel {
			stream = x.Add(stream, attn)
		}
		x.Leave(x.Add(stream, ffn))
	}
	if h, ok := x.Outputs(); ok {
		x.ScaledLogits(m.normed(&m.norm, x, h), m.output, m.scale, 0)
	}
}

// blockNorm loads a norm of a layer with weight and bias.
func blockNorm(l *model.Loader, s model.Hyperparameters, i int, name string) model.LayerNorm {
	return l.LayerNorm(fmt.Sprintf("blk.%d.%s", i, name), s.Width, s.Eps)
}
