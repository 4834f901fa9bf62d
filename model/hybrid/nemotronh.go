package hybrid

import "grove/model"

func init() { model.Register("nemotron_h", openNemotronH) }

// openNemotronH opens Nemotron-H (NVIDIA 2025): each layer is one block, Mamba 2, attention without rotation, or a
// feed-forward block with the square of ReLU. A layer with inner values feeds forward; one without heads and inner values is
// a recurrence.
func openNemotronH(l *model.Loader) model.Model {
	s, layers := l.LayerHyperparameters()
	l.Refuse("nextn_predict_layers")
	h := loadSSM2(l, s)
	scale := l.RangeOr("attention.scale", 0, 0, 1e4)
	var mix plainMixture
	if s.Experts > 0 {
		mix = loadPlainMixture(l, s)
	}
	return openDecoder(l, s, func(i int) []sublayer {
		one := sub(l, s, i, "attn_norm")
		switch {
		case layers[i].FFN > 0 && s.Experts > 0:
			one.blocks = []block{mix.layer(l, i)}
		case layers[i].FFN > 0:
			one.blocks = []block{&squaredMLP{l.PlainMLP(layers[i], i)}}
		case layers[i].KVHeads > 0:
			a := l.Attention(layers[i], i, nil)
			if scale > 0 {
				a.Scale = float32(scale)
			}
			one.blocks = []block{&a}
		default:
			one.blocks = []block{h.loadMamba2(l, i)}
		}
		return []sublayer{one}
	})
}
