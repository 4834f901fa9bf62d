package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("minimax-m2", openMiniMaxM2) }

// openMiniMaxM2 opens MiniMax-M2 (MiniMax 2025): queries and keys are normed over all heads together and rotate by
// halves, in part, and every layer has a mixture of experts, chosen by sigmoids with a bias. The model has no biases of
// queries, keys and values: where a file has some they are left out, as llama.cpp does.
func openMiniMaxM2(l *model.Loader) model.Model {
	const softmax, sigmoid = 1, 2
	s := l.Hyperparameters()
	needExperts(l, s)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	router := compute.Router{ExpertsPerToken: s.ExpertsPerToken, Norm: true, Sigmoid: l.CountOr("expert_gating_func", sigmoid, softmax, sigmoid) == sigmoid}
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
		layer := decoderLayer{attn: l.Attention(s, i, rope), experts: l.Experts(s, i, ffn)}
		for p := range layer.attn.QKV {
			layer.attn.QKV[p].Bias = compute.Vector{}
		}
		layer.attn.QNorm = l.Vector(name("attn_q_norm.weight"), s.Heads*s.KeySize)
		layer.attn.KNorm = l.Vector(name("attn_k_norm.weight"), s.KVHeads*s.KeySize)
		layer.experts.Choice = router
		layer.experts.Choice.Bias = l.Vector(name("exp_probs_b.bias"), s.Experts)
		return layer
	})
}
