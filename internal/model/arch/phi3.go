package arch

import "grove/internal/model"

func init() { model.Register("phi3", openPhi3) }

// openPhi3 opens Phi 3 to 4 (Microsoft 2024): queries, keys and values are one tensor, the gate and the matrix
// that it gates another. Heads rotate by halves, in part where the file says so, and by LongRoPE in the models of
// long context.
func openPhi3(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	l.Windows(l.CountOr("attention.sliding_window", 0, 0, 1<<24), 0)
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		return decoderLayer{attn: l.Attention(s, i, rope), mlp: l.FusedMLP(s, i)}
	})
}
