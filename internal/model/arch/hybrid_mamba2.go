package arch

import "grove/internal/model"

func init() { model.Register("mamba2", openMamba2) }

// openMamba2 opens Mamba 2 (Dao and Gu 2024), whose layers are recurrences too.
func openMamba2(l *model.Loader) model.Model {
	s := withoutAttention(l)
	h := loadSSM2(l, s)
	return hybridOpenDecoder(l, s, func(i int) []sublayer {
		return []sublayer{sub(l, s, i, "attn_norm", h.loadMamba2(l, i))}
	})
}
