package arch

import "grove/internal/model"

func init() { model.Register("bailingmoe", openBailingMoE) }

// openBailingMoE opens Ling 1 (Ling team 2025): DeepSeekMoE's layers, all of them with experts.
func openBailingMoE(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	mix := loadMixture(l, s)
	mix.dense = 0
	rope := l.Rope(s, false)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		layer.mlp, layer.experts = mix.blocks(l, i)
		return layer
	})
}
