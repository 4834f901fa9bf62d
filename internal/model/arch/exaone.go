package arch

import "grove/internal/model"

func init() { model.Register("exaone", openExaone) }

// openExaone opens EXAONE 3 (LG AI Research 2024): Llama's layers, whose heads rotate by halves.
func openExaone(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		return decoderLayer{attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)}
	})
}
