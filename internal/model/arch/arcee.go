package arch

import (
	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("arcee", openArcee) }

// openArcee opens Arcee's AFM (Arcee AI 2025): Llama's layers, whose feed-forward blocks have the square of ReLU and no
// gate.
func openArcee(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, false)
	return openDecoder(l, s, func(i int) decoderLayer {
		return decoderLayer{attn: l.Attention(s, i, rope), plain: l.PlainMLP(s, i), activate: (*compute.Exec).ReluSquared}
	})
}
