package arch

import "grove/internal/model"

func init() { model.Register("gemma2", openGemma2) }

// Settings of Gemma 2 that some files lack.
const (
	gemma2Window    = 4096 // of every other layer
	gemma2Period    = 2    // layers from one without a window to the next
	gemma2Softcap   = 50   // of attention
	gemma2Final     = 30   // of logits
	gemma2Layers27B = 46
)

// openGemma2 opens Gemma 2 (Gemma team 2024): windows in every other layer, norms after each block, and
// soft caps on attention's products and on logits.
func openGemma2(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	l.Windows(l.CountOr("attention.sliding_window", gemma2Window, 1, 1<<24), gemma2Period)
	softcap := float32(l.RangeOr("attn_logit_softcapping", gemma2Softcap, 0, 1e6))
	rope := l.Rope(s, true)
	m := loadGemma(l, s, func(i int) gemmaLayer {
		layer := gemmaLayer{attn: l.Attention(s, i, rope)}
		layer.postNorms(l, s, i)
		layer.attn.Softcap = softcap
		if s.Layers == gemma2Layers27B {
			layer.attn.Scale = gemmaWideScale(s)
		}
		return layer
	})
	m.softcap = float32(l.RangeOr("final_logit_softcapping", gemma2Final, 0, 1e6))
	return m
}
