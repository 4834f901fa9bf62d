package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/compute/rotary"
	"grove/internal/model"
)

func init() {
	model.Register("eurobert", openEuroBERT)
	model.Register("neo-bert", openNeoBERT)
	model.Register("gemma-embedding", openGemmaEmbedding)
}

// rms is an encoder with the layers of a decoder: RMSNorm before each block, and behind it too where the file has norms there.
type rms struct {
	info   *model.Info
	embed  *compute.Matrix
	scale  float32 // of embeddings
	eps    float32
	norm   compute.Vector
	layers []rmsLayer
}

type rmsLayer struct {
	attnNorm, postAttn compute.Vector // postAttn and postFFN are empty where there is no norm behind
	attn               model.Attention
	ffnNorm, postFFN   compute.Vector
	ffn                encoderBlock
}

// openEuroBERT opens EuroBERT (Boizard et al. 2025): Llama's layers, whose heads rotate by halves.
func openEuroBERT(l *model.Loader) model.Model {
	s := begin(l)
	rope := l.Rope(s, true)
	return loadRMS(l, s, "output_norm", model.PoolFirst, func(i int, layer *rmsLayer) {
		mlp := l.MLP(s, i)
		layer.attn, layer.ffn = l.Attention(s, i, rope), mlp.Silu
	})
}

// openNeoBERT opens NeoBERT (Le Breton et al. 2025), whose heads rotate in pairs, with queries, keys and values in one matrix, and the gate and what
// it gates in another.
func openNeoBERT(l *model.Loader) model.Model {
	s := begin(l)
	rope := l.Rope(s, false)
	return loadRMS(l, s, "enc.output_norm", model.PoolFirst, func(i int, layer *rmsLayer) {
		mlp := l.FusedMLP(s, i)
		layer.attn, layer.ffn = l.Attention(s, i, rope), mlp.Silu
	})
}

// gemmaPeriod is the number of layers of EmbeddingGemma from one without a window to the next, in files that do not say.
const gemmaPeriod = 6

// openGemmaEmbedding opens EmbeddingGemma (Schechter Vera et al. 2025): Gemma 3 whose tokens see each other, within a window on both sides in five
// layers of six.
func openGemmaEmbedding(l *model.Loader) model.Model {
	s := begin(l)
	windowed := l.CenteredWindows(gemmaPeriod, false)
	global := l.Rope(s, true)
	local := l.NewRope(rotary.Config{Dims: s.KeySize, NeoX: true, Base: l.FloatOr("rope.freq_base_swa", 10000)})
	m := loadRMS(l, s, "output_norm", model.PoolMean, func(i int, layer *rmsLayer) {
		rope := global
		if windowed[i] {
			rope = local
		}
		mlp := l.MLP(s, i)
		layer.attn, layer.ffn = l.Attention(s, i, rope), mlp.Gelu
		l.HeadNorms(&layer.attn)
		layer.postAttn = l.Vector(fmt.Sprintf("blk.%d.post_attention_norm.weight", i), s.Width)
		layer.postFFN = l.Vector(fmt.Sprintf("blk.%d.post_ffw_norm.weight", i), s.Width)
	})
	m.scale = float32(math.Sqrt(float64(s.Width)))
	return m
}

// loadRMS loads the model; more loads the blocks of a layer, and pooling is that of a reranker's pairs.
func loadRMS(l *model.Loader, s model.Hyperparameters, norm string, pooling model.Pooling, more func(i int, layer *rmsLayer)) *rms {
	m := &rms{
		info: l.Info(), embed: l.Matrix("token_embd.weight", l.Info().Vocabulary, s.Width), scale: 1, eps: s.Eps, norm: l.Vector(norm+".weight", s.Width),
	}
	for i := 0; i < s.Layers && l.OK(); i++ {
		layer := rmsLayer{
			attnNorm: l.Vector(fmt.Sprintf("blk.%d.attn_norm.weight", i), s.Width),
			ffnNorm:  l.Vector(fmt.Sprintf("blk.%d.ffn_norm.weight", i), s.Width),
		}
		more(i, &layer)
		m.layers = append(m.layers, layer)
	}
	l.Readouts(pooling, model.Tanh)
	return m
}

// Info implements [model.Model].
func (m *rms) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *rms) Forward(x *compute.Exec) {
	post := func(b compute.Buf, w compute.Vector) compute.Buf {
		if w.Len() == 0 {
			return b
		}
		return x.RMSNorm(b, w, m.eps)
	}
	x.Embed(m.embed, m.scale)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, post(l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, m.eps)), l.postAttn))
		stream = x.Add(stream, post(l.ffn(x, x.RMSNorm(stream, l.ffnNorm, m.eps)), l.postFFN))
		x.Leave(stream)
	}
	states(x, func(a compute.Buf) compute.Buf { return x.RMSNorm(a, m.norm, m.eps) })
}
