package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("step3", openStep3) }

// openStep3 opens Step-3 (StepFun 2025, arXiv 2507.19427): multi-matrix factorization attention, whose heads share one key and one value of a
// row; layers with a router have a mixture, whose weights are not shares among the chosen unless the file says so, and a shared expert. The names of
// its tensors are grove's own, after those of DeepSeek.
func openStep3(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	rank := l.Count("attention.q_lora_rank", 1, 1<<16)
	mix := mixture{hparams: s, ffn: l.Count("expert_feed_forward_length", 1, 1<<18), router: l.Router(s)}
	mix.shared = l.CountOr("expert_shared_feed_forward_length", mix.ffn, 1, 1<<18)
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.FactoredAttention(s, i, rank, rope)}
		if mix.dense = 0; !l.Has(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)) {
			mix.dense = i + 1
		}
		layer.mlp, layer.experts = mix.blocks(l, i)
		return layer
	})
}
