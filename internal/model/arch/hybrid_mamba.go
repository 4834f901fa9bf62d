package arch

import (
	"grove/internal/kv"
	"grove/internal/model"
)

func init() { model.Register("mamba", openMamba) }

// openMamba opens Mamba (Gu and Dao 2023) and Falcon Mamba (TII 2024), which norms the inputs of the steps, B and C: every
// layer is a recurrence, and none attends.
func openMamba(l *model.Loader) model.Model {
	s := withoutAttention(l)
	h := loadSSM(l, s)
	normed := l.BoolOr("ssm.dt_b_c_rms", false)
	h.eps = float32(l.RangeOr("ssm.dt_b_c_rms_epsilon", float64(s.Eps), 0, 1)) // a key of grove's own: llama.cpp takes that of the layers
	return hybridOpenDecoder(l, s, func(i int) []sublayer {
		return []sublayer{sub(l, s, i, "attn_norm", h.loadMamba1(l, i, normed))}
	})
}

// withoutAttention reads the hyperparameters of a model whose layers do not attend. A file may give heads, which say
// nothing.
func withoutAttention(l *model.Loader) model.Hyperparameters {
	s, _ := l.LayerHyperparameters()
	for i := range l.Info().Layers {
		l.Info().Layers[i] = kv.Layer{}
	}
	return s
}
