package arch

import "grove/internal/model"

func init() { model.Register("deepseek", openDeepSeek) }

// openDeepSeek opens DeepSeekMoE (Dai et al. 2024): Llama's attention, a plain first layer, and many small experts of
// which some are shared.
func openDeepSeek(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	l.Refuse("attention.scale")
	mix := loadMixture(l, s)
	rope := l.Rope(s, false)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		layer.mlp, layer.experts = mix.blocks(l, i)
		return layer
	})
}
