package arch

import "grove/internal/model"

func init() { model.Register("qwen3", openQwen3) }

// openQwen3 opens Qwen 3 (Qwen team 2025): queries and keys are normed head by head before they rotate by
// halves.
func openQwen3(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)}
		l.HeadNorms(&layer.attn)
		return layer
	})
}
