package arch

import "grove/internal/model"

func init() { model.Register("hunyuan-dense", openHunyuan) }

// openHunyuan opens the dense Hunyuan models (Tencent 2025): queries and keys are normed head by head after they rotate by
// halves. Files hold the base of the rotation with its scaling for long texts in it.
func openHunyuan(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)}
		l.HeadNorms(&layer.attn)
		layer.attn.NormAfterRope = true
		return layer
	})
}
