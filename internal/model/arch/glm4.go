package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("glm4", openGLM4) }

// openGLM4 opens GLM-4-0414 (GLM team 2024, Zhipu AI 2025): Llama's layers with norms after both blocks, biases of queries,
// keys and values, and the gate in one matrix with what it gates. A part of each head rotates, by adjacent pairs, or by
// halves in models that also see images.
func openGLM4(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	l.SplitPredictors(&s)
	rope := l.Rope(s, l.Sections(s))
	return openDecoder(l, s, func(i int) decoderLayer {
		return decoderLayer{
			attn:     l.Attention(s, i, rope),
			postAttn: l.Vector(fmt.Sprintf("blk.%d.post_attention_norm.weight", i), s.Width),
			mlp:      l.FusedMLP(s, i),
			postFFN:  l.Vector(fmt.Sprintf("blk.%d.post_ffw_norm.weight", i), s.Width),
		}
	})
}
