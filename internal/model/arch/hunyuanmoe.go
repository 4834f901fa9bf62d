package arch

import "grove/internal/model"

func init() { model.Register("hunyuan-moe", openHunyuanMoE) }

// openHunyuanMoE opens Hunyuan A13B (Tencent 2025): queries and keys are normed head by head after they rotate by
// halves, and every layer has a mixture of experts and one that all rows run. The weights of the chosen sum to 1.
func openHunyuanMoE(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	shared := l.CountOr("expert_shared_feed_forward_length", 0, 0, 1<<18)
	if shared == 0 {
		shared = s.FFN
	}
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope), experts: l.Experts(s, i, s.FFN), mlp: l.SharedMLP(s, i, shared)}
		l.HeadNorms(&layer.attn)
		layer.attn.NormAfterRope = true
		return layer
	})
}
