package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("glm4moe", openGLM4MoE) }

// openGLM4MoE opens GLM-4.5 to 4.7 (GLM team 2025): DeepSeek's mixtures, whose affinities are sigmoids with a bias for the
// choice. A part of each head rotates, by halves; the larger models norm queries and keys.
func openGLM4MoE(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	l.SplitPredictors(&s)
	l.Sections(s)
	mix := loadMixture(l, s)
	mix.router.Sigmoid = mix.router.Sigmoid || l.CountOr("expert_gating_func", 0, 0, 1<<16) == 0
	rope := l.Rope(s, true)
	return openDecoder(l, s, func(i int) decoderLayer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.weight", i, t) }
		layer := decoderLayer{attn: l.Attention(s, i, rope), ffnNorm: l.Vector(name("post_attention_norm"), s.Width)}
		layer.attn.QNorm, layer.attn.KNorm = l.VectorIf(name("attn_q_norm"), s.KeySize), l.VectorIf(name("attn_k_norm"), s.KeySize)
		layer.mlp, layer.experts = mix.blocks(l, i)
		return layer
	})
}
