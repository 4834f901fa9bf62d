package arch

import "grove/internal/model"

func init() { model.Register("qwen2moe", openQwen2MoE) }

// openQwen2MoE opens Qwen 1.5 and 2 with a mixture in every layer (Qwen team 2024): the weights of experts are not
// shares among the chosen, and a sigmoid of each row weighs a shared expert.
func openQwen2MoE(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	shared := l.CountOr("expert_shared_feed_forward_length", 0, 0, 1<<18)
	if shared == 0 {
		shared = s.FFN
	}
	router := l.Router(s)
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope), experts: l.Experts(s, i, ffn), shared: l.SharedExpert(s, i, shared)}
		layer.experts.Choice = router
		return layer
	})
}
