package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() {
	model.Register("ernie4_5", openErnie)
	model.Register("ernie4_5-moe", openErnieMoE)
}

// openErnie opens ERNIE 4.5 without experts (Baidu 2025): Llama's layers, with biases in some models.
func openErnie(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, false)
	return openDecoder(l, s, func(i int) decoderLayer {
		return decoderLayer{attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)}
	})
}

// openErnieMoE opens ERNIE 4.5 with a mixture of experts in some layers: a bias joins the affinities for the choice, and
// shared experts join the chosen ones.
func openErnieMoE(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	shared := l.CountOr("expert_shared_feed_forward_length", 0, 0, 1<<18)
	dense := l.CountOr("leading_dense_block_count", 0, 0, s.Layers)
	step := l.CountOr("interleave_moe_layer_step", 1, 1, 128)
	rope := l.Rope(s, false)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		if i < dense || (i+1)%step != 0 {
			layer.mlp = l.MLP(s, i)
			return layer
		}
		layer.experts = l.Experts(s, i, ffn)
		layer.experts.Choice.Bias = l.VectorIf(fmt.Sprintf("blk.%d.exp_probs_b.bias", i), s.Experts)
		if shared > 0 {
			layer.mlp = l.SharedMLP(s, i, shared)
		}
		return layer
	})
}
