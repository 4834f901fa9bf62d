package arch

import "grove/internal/model"

func init() { model.Register("starcoder2", openStarCoder2) }

// openStarCoder2 opens StarCoder 2 (Lozhkov et al. 2024): GPT-2's layers, with heads that rotate by halves
// instead of learned positions.
func openStarCoder2(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	l.Windows(l.CountOr("attention.sliding_window", 0, 0, 1<<24), 0)
	return loadGPT2(l, s, l.Rope(s, true))
}
