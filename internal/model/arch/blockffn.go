package arch

import "grove/internal/model"

func init() { model.Register("blockffn", openBlockFFN) }

// openBlockFFN opens BlockFFN (Song et al. 2025, arXiv 2507.08771): MiniCPM's layers and scales, with a feed-forward block of many blocks of which a row
// has gates for few. Heads rotate by halves. The names of its files are grove's own, after those of mixtures.
func openBlockFFN(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	rope := l.Rope(s, true)
	m := openDecoder(l, s, func(i int) decoderLayer {
		blocks := l.Blocks(s, i, ffn)
		return decoderLayer{attn: l.Attention(s, i, rope), ffn: blocks.Forward}
	})
	m.scales = readScales(l, miniCPMScales(s))
	return m
}
