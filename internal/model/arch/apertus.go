package arch

import (
	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("apertus", openApertus) }

// openApertus opens Apertus (Swiss AI 2025): queries and keys are normed head by head before they rotate by halves, and
// the feed-forward blocks have xIELU and no gate (Huang and Schlag 2024), with settings for each layer.
func openApertus(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	alphaP, alphaN := l.LayerFloats("xielu.alpha_p"), l.LayerFloats("xielu.alpha_n")
	beta, eps := l.LayerFloats("xielu.beta"), l.LayerFloats("xielu.eps")
	return openDecoder(l, s, func(i int) decoderLayer {
		act := compute.NewXIELU(alphaP[i], alphaN[i], beta[i], eps[i])
		layer := decoderLayer{
			attn: l.Attention(s, i, rope), plain: l.PlainMLP(s, i),
			activate: func(x *compute.Exec, a compute.Buf) compute.Buf { return x.XIELU(a, act) },
		}
		l.HeadNorms(&layer.attn)
		return layer
	})
}
