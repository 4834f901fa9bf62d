package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("bert", openBERT) }

// bert is BERT (Devlin et al. 2018), an encoder whose norms come after the additions, and that has no head, with what the encoders
// of its line changed: positions by rotation or by biases of attention, gates, mixtures. Every token has the type of a first sentence.
type bert struct {
	info      *model.Info
	embed     *compute.Matrix
	positions *compute.Matrix // nil: none
	sentence  compute.Vector  // the embedding of the first sentence's type
	inputNorm model.LayerNorm
	layers    []bertLayer
}

type bertLayer struct {
	attn              attention
	attnNorm, ffnNorm model.LayerNorm
	again             model.LayerNorm // of the attention's norm added to the layer's input once more; without weights: none
	ffn               encoderBlock
}

// encoderBlock is a feed-forward block: it returns its addition to the stream.
type encoderBlock func(x *compute.Exec, h compute.Buf) compute.Buf

// openBERT opens BERT, and RoBERTa and XLM-RoBERTa, whose files are cut to positions that begin at 0. GELU is the approximation by tanh, as in
// BERT's first code; that of llama.cpp is the same, from a table of half floats.
func openBERT(l *model.Loader) model.Model {
	s := begin(l)
	m := loadBERT(l, s, func(i int, layer *bertLayer) {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.bias", i, t) }
		if l.Has(fmt.Sprintf("blk.%d.attn_qkv.weight", i)) {
			l.Need(name("attn_qkv"))
		} else {
			l.Need(name("attn_q"), name("attn_k"), name("attn_v"))
		}
		l.Need(name("attn_output"), name("ffn_up"), name("ffn_down"))
		mlp := l.PlainMLP(s, i)
		layer.ffn = mlp.Gelu
	})
	m.positions = l.Matrix("position_embd.weight", l.Info().Context, s.Width)
	l.Readouts(model.PoolFirst, model.Tanh)
	return m
}

// loadBERT loads the model without its positions and what is behind it. more loads the feed-forward block of a layer.
func loadBERT(l *model.Loader, s model.Hyperparameters, more func(i int, layer *bertLayer)) *bert {
	eps := float32(l.RangeOr("attention.layer_norm_epsilon", 1e-12, 0, 1))
	m := &bert{
		info: l.Info(), embed: l.Matrix("token_embd.weight", l.Info().Vocabulary, s.Width),
		sentence:  l.FirstRowIf("token_types.weight", s.Width),
		inputNorm: l.LayerNorm("token_embd_norm", s.Width, eps),
	}
	for i := 0; i < s.Layers && l.OK(); i++ {
		layer := bertLayer{
			attn:     loadAttention(l, s, i),
			attnNorm: l.LayerNorm(fmt.Sprintf("blk.%d.attn_output_norm", i), s.Width, eps),
			ffnNorm:  l.LayerNorm(fmt.Sprintf("blk.%d.layer_output_norm", i), s.Width, eps),
		}
		more(i, &layer)
		m.layers = append(m.layers, layer)
	}
	return m
}

// Info implements [model.Model].
func (m *bert) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *bert) Forward(x *compute.Exec) {
	m.layersOf(x)
	states(x, nil)
}

// layersOf runs the embeddings and the layers.
func (m *bert) layersOf(x *compute.Exec) {
	x.Embed(m.embed, 1)
	if m.positions != nil {
		x.Positions(m.positions)
	}
	x.NormInputs(m.sentence, m.inputNorm.Weight, m.inputNorm.Bias, m.inputNorm.Eps)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		x.Leave(l.forward(x, stream))
	}
}

// forward returns the stream behind a layer.
func (l *bertLayer) forward(x *compute.Exec, stream compute.Buf) compute.Buf {
	var before compute.Buf
	again := l.again.Weight.Len()
	if again > 0 {
		before = x.Part(stream, 0, again)
	}
	stream = l.attnNorm.Stream(x, x.Add(stream, l.attn.forward(x, stream)))
	if again > 0 {
		stream = l.again.Stream(x, x.Add(stream, before))
	}
	return l.ffnNorm.Stream(x, x.Add(stream, l.ffn(x, stream)))
}
