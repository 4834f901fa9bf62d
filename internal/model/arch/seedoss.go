package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("seed_oss", openSeedOSS) }

// openSeedOSS opens Seed-OSS (ByteDance Seed 2025): Qwen 2's layers, in which files name the norm before the feed-forward
// block after the attention that it follows.
func openSeedOSS(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		return decoderLayer{
			attn: l.Attention(s, i, rope), mlp: l.MLP(s, i),
			ffnNorm: l.Vector(fmt.Sprintf("blk.%d.post_attention_norm.weight", i), s.Width),
		}
	})
}
