package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("exaone-moe", openExaoneMoE) }

// Settings of K-EXAONE that files may lack.
const (
	exaoneMoEWindow = 128
	exaoneMoEPeriod = 4 // layers from one without a window to the next
)

// openExaoneMoE opens K-EXAONE (LG AI Research 2025): queries and keys are normed head by head. Layers with a sliding
// window rotate by halves; the others, which see the whole text, do not rotate. Behind the leading layers come
// mixtures of experts, chosen by sigmoids with a bias, and shared experts, as in DeepSeek-V3.
func openExaoneMoE(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	windowed := l.Windows(l.CountOr("attention.sliding_window", exaoneMoEWindow, 1, 1<<24), exaoneMoEPeriod)
	l.SplitPredictors(&s)
	dense := l.CountOr("leading_dense_block_count", 0, 0, s.Layers)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	shared := l.CountOr("expert_shared_feed_forward_length", ffn*l.CountOr("expert_shared_count", 1, 0, 1<<8), 0, 1<<18)
	mix := mixture{hparams: s, dense: dense, ffn: ffn, shared: shared, router: l.Router(s)}
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		l.HeadNorms(&layer.attn)
		if !windowed[i] {
			layer.attn.Rope = nil
		}
		if mix.dense = dense; i >= s.Layers && !l.Has(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)) {
			mix.dense = i + 1 // a predictor has a plain block
		}
		if i >= mix.dense {
			l.Need(fmt.Sprintf("blk.%d.exp_probs_b.bias", i))
		}
		layer.mlp, layer.experts = mix.blocks(l, i)
		return layer
	})
}
