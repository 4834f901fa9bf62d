package arch

import (
	"fmt"

	"grove/compute"
	"grove/model"
)

func init() { model.Register("bert", openBERT) }

// bert is BERT (Devlin et al. 2018), an encoder: the tokens of a text see each other, norms come after the
// additions, and there is no head. Every token has the type of a first sentence.
type bert struct {
	info      *model.Info
	embed     *compute.Matrix
	positions *compute.Matrix
	sentence  compute.Vector // the embedding of the first sentence's type
	inputNorm model.LayerNorm
	layers    []bertLayer
}

type bertLayer struct {
	attn              model.Attention
	attnNorm, ffnNorm model.LayerNorm
	mlp               model.PlainMLP
}

func openBERT(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	eps := float32(l.RangeOr("attention.layer_norm_epsilon", 1e-12, 0, 1))
	if l.BoolOr("attention.causal", false) {
		l.Fail("bert.attention.causal is true; an encoder's tokens see each other")
	}
	m := &bert{
		info: l.Info(), embed: l.Matrix("token_embd.weight", l.Info().Vocabulary, s.Width),
		positions: l.Matrix("position_embd.weight", l.Info().Context, s.Width),
		sentence:  l.FirstRowIf("token_types.weight", s.Width),
		inputNorm: l.LayerNorm("token_embd_norm", s.Width, eps),
	}
	m.info.Encoder = true
	for i := 0; i < s.Layers && l.OK(); i++ {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.bias", i, t) }
		l.Need(name("attn_q"), name("attn_k"), name("attn_v"), name("attn_output"), name("ffn_up"), name("ffn_down"))
		m.layers = append(m.layers, bertLayer{
			attn:     l.Attention(s, i, nil),
			attnNorm: l.LayerNorm(fmt.Sprintf("blk.%d.attn_output_norm", i), s.Width, eps),
			mlp:      l.PlainMLP(s, i),
			ffnNorm:  l.LayerNorm(fmt.Sprintf("blk.%d.layer_output_norm", i), s.Width, eps),
		})
	}
	return m
}

// Info implements [model.Model].
func (m *bert) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *bert) Forward(x *compute.Exec) {
	x.Embed(m.embed, 1)
	x.Positions(m.positions)
	x.NormInputs(m.sentence, m.inputNorm.Weight, m.inputNorm.Bias, m.inputNorm.Eps)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = l.attnNorm.Stream(x, x.Add(stream, l.attn.Forward(x, stream)))
		stream = l.ffnNorm.Stream(x, x.Add(stream, l.mlp.Gelu(x, stream)))
		x.Leave(stream)
	}
	if h, ok := x.Outputs(); ok {
		x.States(h)
	}
}
