package arch

import (
	"grove/internal/compute/rotary"
	"grove/internal/model"
)

func init() { model.Register("gemma3", openGemma3) }

// Settings of Gemma 3 that files lack.
const (
	gemma3Period    = 6 // layers from one without a window to the next
	gemma3Layers27B = 62
)

// openGemma3 opens Gemma 3, text only (Gemma team 2025): five layers with a sliding window and a rotary
// base of their own, then one without a window; norms after each block, and of queries and keys.
func openGemma3(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	windowed := l.Windows(l.Count("attention.sliding_window", 1, 1<<24), gemma3Period)
	global := l.Rope(s, true)
	local := l.NewRope(rotary.Config{Dims: s.KeySize, NeoX: true, Base: l.FloatOr("rope.freq_base_swa", 10000)})
	m := loadGemma(l, s, func(i int) gemmaLayer {
		rope := global
		if windowed[i] {
			rope = local
		}
		layer := gemmaLayer{attn: l.Attention(s, i, rope)}
		l.HeadNorms(&layer.attn)
		layer.postNorms(l, s, i)
		if s.Layers == gemma3Layers27B {
			layer.attn.Scale = gemmaWideScale(s)
		}
		return layer
	})
	m.softcap = float32(l.RangeOr("final_logit_softcapping", 0, 0, 1e6))
	return m
}
