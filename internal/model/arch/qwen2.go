package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("qwen2", openQwen2) }

// openQwen2 opens Qwen 1.5 to 2.5 (Qwen team 2024): queries, keys and values have biases, and heads rotate
// by halves.
func openQwen2(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.bias", i, t) }
		l.Need(name("attn_q"), name("attn_k"), name("attn_v"))
		return decoderLayer{attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)}
	})
}
