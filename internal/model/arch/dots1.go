package arch

import "grove/internal/model"

func init() { model.Register("dots1", openDots1) }

// openDots1 opens dots.llm1 (rednote-hilab 2025): the experts of DeepSeek-V3, chosen by sigmoids, and the attention of
// Qwen 3, whose queries and keys are normed head by head.
func openDots1(l *model.Loader) model.Model { return openNormedMixture(l) }

// openNormedMixture opens DeepSeek's mixture with the attention of Qwen 3.
func openNormedMixture(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	l.SplitPredictors(&s)
	mix := loadMixture(l, s)
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		l.HeadNorms(&layer.attn)
		layer.mlp, layer.experts = mix.blocks(l, i)
		return layer
	})
}
