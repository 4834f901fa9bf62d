package arch

import (
	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("cohere2", openCohere2) }

// cohere2Period is the number of layers from one without a window to the next.
const cohere2Period = 4

// openCohere2 opens Command R7B and A (Cohere 2024, 2025): Command R's layers, of which three in four have a sliding
// window; the others see everything and do not rotate.
func openCohere2(l *model.Loader) model.Model {
	s := centeredHyperparameters(l)
	windowed := l.Windows(l.Count("attention.sliding_window", 1, 1<<24), cohere2Period)
	rope := l.Rope(s, false)
	return openCohere(l, s, func(i int) model.Attention {
		var turn *compute.Rope
		if windowed[i] {
			turn = rope
		}
		return l.Attention(s, i, turn)
	})
}
