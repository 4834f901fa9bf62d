package arch

import "grove/internal/model"

func init() { model.Register("qwen3moe", openQwen3MoE) }

// openQwen3MoE opens Qwen 3 with a mixture of experts in every layer (Qwen team 2025).
func openQwen3MoE(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope), experts: l.Experts(s, i, ffn)}
		l.HeadNorms(&layer.attn)
		return layer
	})
}
