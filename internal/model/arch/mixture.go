package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/model"
)

// mixture is the settings of DeepSeek's mixtures (DeepSeek-AI 2024): some leading layers have a plain feed-forward
// block, the others routed experts and shared experts, which every row runs.
type mixture struct {
	hparams model.Hyperparameters
	dense   int // leading layers without experts
	ffn     int // inner values of an expert
	shared  int // inner values of the shared experts together; 0: none
	router  compute.Router
}

// loadMixture reads the settings. A file without experts has a plain block in every layer.
func loadMixture(l *model.Loader, s model.Hyperparameters) mixture {
	m := mixture{hparams: s, dense: math.MaxInt}
	if s.Experts > 0 {
		m.dense = l.CountOr("leading_dense_block_count", 0, 0, s.Layers)
		m.ffn = l.Count("expert_feed_forward_length", 1, 1<<18)
		m.shared = l.CountOr("expert_shared_count", 0, 0, 1<<8) * m.ffn
		m.router = l.Router(s)
	}
	return m
}

// blocks loads the feed-forward blocks of a layer: the plain block or the shared experts, and the routed experts.
func (m *mixture) blocks(l *model.Loader, layer int) (mlp model.MLP, experts model.Experts) {
	if layer < m.dense {
		return l.MLP(m.hparams, layer), experts
	}
	experts = l.Experts(m.hparams, layer, m.ffn)
	experts.Choice = m.router
	experts.Choice.Bias = l.VectorIf(fmt.Sprintf("blk.%d.exp_probs_b.bias", layer), m.hparams.Experts)
	if m.shared > 0 {
		mlp = l.SharedMLP(m.hparams, layer, m.shared)
	}
	return mlp, experts
}

// needExperts refuses a file without a mixture.
func needExperts(l *model.Loader, s model.Hyperparameters) {
	if s.Experts == 0 {
		l.Fail("%s.expert_count is 0 or missing", l.Info().Arch)
	}
}
