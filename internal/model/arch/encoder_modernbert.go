package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("modern-bert", openModernBERT) }

// modernPeriod is the number of layers from one without a window to the next, in files that do not say.
const modernPeriod = 3

// modernBERT is ModernBERT (Warner et al. 2024), also as Ettin and Granite Embedding have it: norms without biases before each block, and behind the
// embeddings instead of before the first attention; heads that rotate by halves; a window on both sides, with a rotary base of its own, in
// all layers but the first of every three; a gated feed-forward block. llama.cpp takes GELU by tanh.
type modernBERT struct {
	info      *model.Info
	embed     *compute.Matrix
	inputNorm model.LayerNorm
	norm      model.LayerNorm
	layers    []modernLayer
}

type modernLayer struct {
	attn              attention
	attnNorm, ffnNorm model.LayerNorm // attnNorm may have no weights: none
	ffn               encoderBlock
}

func openModernBERT(l *model.Loader) model.Model {
	s := begin(l)
	eps := float32(l.RangeOr("attention.layer_norm_epsilon", 1e-5, 0, 1))
	norm := func(name string) model.LayerNorm {
		return model.LayerNorm{Weight: l.Vector(name+".weight", s.Width), Eps: eps}
	}
	config := l.RopeConfig(s, true)
	global := l.NewRope(config)
	config.Base = l.FloatOr("rope.freq_base_swa", config.Base)
	local := l.NewRope(config)
	activation := l.TextOr("hidden_activation", "gelu")
	m := &modernBERT{info: l.Info(), embed: l.Matrix("token_embd.weight", l.Info().Vocabulary, s.Width), inputNorm: norm("token_embd_norm"), norm: norm("output_norm")}
	windowed := l.CenteredWindows(modernPeriod, true)
	for i := 0; i < s.Layers && l.OK(); i++ {
		layer := modernLayer{attn: loadAttention(l, s, i), ffnNorm: norm(fmt.Sprintf("blk.%d.ffn_norm", i))}
		if name := fmt.Sprintf("blk.%d.attn_norm", i); i > 0 || l.Has(name+".weight") {
			layer.attnNorm = norm(name)
		}
		if layer.attn.rope = global; windowed[i] {
			layer.attn.rope = local
		}
		switch mlp := l.FusedMLP(s, i); activation {
		case "gelu":
			layer.ffn = gelu(mlp)
		case "gelu_pytorch_tanh", "gelu_new":
			layer.ffn = mlp.Gelu
		case "silu", "swish":
			layer.ffn = mlp.Silu
		default:
			l.Fail("%s.hidden_activation is %q; gelu, gelu_pytorch_tanh, gelu_new, silu and swish are supported", l.Info().Arch, activation)
		}
		m.layers = append(m.layers, layer)
	}
	l.Readouts(headPooling(l), model.Gelu)
	return m
}

// headPooling reads how the head of a reranker pools. Files of llama.cpp do not say; it takes the mean.
func headPooling(l *model.Loader) model.Pooling {
	p, err := model.ParsePooling(l.TextOr("classifier_pooling", "mean"))
	if err != nil || p == model.PoolNone {
		l.Fail("%s.classifier_pooling is %q; mean, cls and last are supported", l.Info().Arch, l.TextOr("classifier_pooling", ""))
	}
	return p
}

// Info implements [model.Model].
func (m *modernBERT) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *modernBERT) Forward(x *compute.Exec) {
	x.Embed(m.embed, 1)
	x.NormInputs(compute.Vector{}, m.inputNorm.Weight, compute.Vector{}, m.inputNorm.Eps)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		h := stream
		if l.attnNorm.Weight.Len() > 0 {
			h = l.attnNorm.Forward(x, stream)
		}
		stream = x.Add(stream, l.attn.forward(x, h))
		x.Leave(x.Add(stream, l.ffn(x, l.ffnNorm.Forward(x, stream))))
	}
	states(x, func(a compute.Buf) compute.Buf { return m.norm.Forward(x, a) })
}
