package arch

import "grove/internal/model"

func init() { model.Register("exaone4", openExaone4) }

// Settings of EXAONE 4 of 32 B, the model with windows; files show it by their number of layers.
const (
	exaone4Layers32B = 64
	exaone4Window    = 4096
	exaone4Period    = 4 // layers from one without a window to the next
)

// openExaone4 opens EXAONE 4 (LG AI Research 2025): OLMo 2's norms after the blocks, and queries and keys that are normed
// head by head. With windows in three of four layers, the others do not rotate.
func openExaone4(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	local := make([]bool, s.Layers)
	windows := s.Layers == exaone4Layers32B
	if windows {
		local = l.Windows(l.CountOr("attention.sliding_window", exaone4Window, 1, 1<<24), exaone4Period)
	}
	return loadOlmo2(l, s, func(i int) model.Attention {
		a := l.Attention(s, i, rope)
		if l.HeadNorms(&a); windows && !local[i] {
			a.Rope = nil
		}
		return a
	})
}
