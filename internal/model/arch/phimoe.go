package arch

import (
	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("phimoe", openPhiMoE) }

// openPhiMoE opens Phi 3.5 MoE (Microsoft 2024; Abdin et al. 2024) as its published code computes it: LayerNorm, and a mixture in every layer,
// whose two experts SparseMixer weighs. llama.cpp has the root mean square and a softmax of the two in their place, so that its logits are those
// of another model.
func openPhiMoE(l *model.Loader) model.Model {
	near := 2 * l.RangeOr("router_jitter_noise", 0.01, 0, 1) // the key is grove's own, after that of config.json
	return loadPhiMoE(l, compute.Router{Near: float32(near)})
}

// loadPhiMoE loads the layers around a choice of experts.
func loadPhiMoE(l *model.Loader, router compute.Router) *centered {
	s := l.Hyperparameters()
	needExperts(l, s)
	if router.ExpertsPerToken = s.ExpertsPerToken; s.ExpertsPerToken != 2 {
		l.Fail("%s.expert_used_count is %d; it must be 2", l.Info().Arch, s.ExpertsPerToken)
	}
	l.Windows(l.CountOr("attention.sliding_window", 0, 0, 1<<24), 0)
	rope := l.Rope(s, true)
	m := openCentered(l, s, l.LayerNorm("output_norm", s.Width, s.Eps), func(i int) centeredLayer {
		ffnNorm, experts := blockNorm(l, s, i, "ffn_norm"), l.Experts(s, i, s.FFN)
		experts.Choice = router
		return centeredLayer{attnNorm: blockNorm(l, s, i, "attn_norm"), attn: l.Attention(s, i, rope), ffnNorm: &ffnNorm, ffn: experts.Silu}
	})
	m.output.Bias = l.VectorIf("output.bias", m.info.Vocabulary)
	return m
}
