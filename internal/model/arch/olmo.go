package arch

import (
	"grove/internal/compute/weight"
	"grove/internal/model"
)

func init() { model.Register("olmo", openOlmo) }

// openOlmo opens OLMo 1 (Groeneveld et al. 2024): Llama's layers with LayerNorm that has neither weights nor biases.
// Queries, keys and values keep within a limit where the file sets one. Heads rotate by adjacent pairs.
func openOlmo(l *model.Loader) model.Model {
	s := centeredHyperparameters(l)
	rope, limit := l.Rope(s, false), float32(l.RangeOr("attention.clamp_kqv", 0, 0, 1e6))
	norm := model.LayerNorm{Weight: weight.Ones(s.Width), Eps: s.Eps}
	return openCentered(l, s, norm, func(i int) centeredLayer {
		mlp := l.MLP(s, i)
		layer := centeredLayer{attnNorm: norm, attn: l.Attention(s, i, rope), ffnNorm: &norm, ffn: mlp.Silu}
		layer.attn.Limit = limit
		return layer
	})
}
