package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("olmoe", openOlmoe) }

// openOlmoe opens OLMoE (Muennighoff et al. 2024): a mixture in every layer, whose weights are not shares among the
// chosen, and queries and keys that are normed over all heads together.
func openOlmoe(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	l.Refuse("attention.clamp_kqv")
	router := l.Router(s)
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope), experts: l.Experts(s, i, s.FFN)}
		layer.experts.Choice = router
		layer.attn.QNorm = l.Vector(fmt.Sprintf("blk.%d.attn_q_norm.weight", i), s.Heads*s.KeySize)
		layer.attn.KNorm = l.Vector(fmt.Sprintf("blk.%d.attn_k_norm.weight", i), s.KVHeads*s.KeySize)
		return layer
	})
}
