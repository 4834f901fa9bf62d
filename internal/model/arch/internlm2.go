package arch

import "grove/internal/model"

func init() { model.Register("internlm2", openInternLM2) }

// openInternLM2 opens InternLM 2 (Cai et al. 2024): Llama's layers. Files hold the queries, keys and values of the paper's
// one matrix in three tensors.
func openInternLM2(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, false)
	return openDecoder(l, s, func(i int) decoderLayer {
		return decoderLayer{attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)}
	})
}
