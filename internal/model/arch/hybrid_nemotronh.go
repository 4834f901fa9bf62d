package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("nemotron_h", openNemotronH) }

// openNemotronH opens Nemotron-H (NVIDIA 2025): each layer is one block, Mamba 2, attention without rotation, or a
// feed-forward block with the square of ReLU. A layer with inner values feeds forward; one without heads and inner values is
// a recurrence.
func openNemotronH(l *model.Loader) model.Model {
	s, layers := l.LayerHyperparameters()
	l.SplitPredictors(&s)
	h := loadSSM2(l, s)
	scale := l.RangeOr("attention.scale", 0, 0, 1e4)
	var mix plainMixture
	if s.Experts > 0 {
		mix = loadPlainMixture(l, s)
	}
	attention := func(i int) hybridBlock {
		a := l.Attention(layers[i], i, nil)
		if scale > 0 {
			a.Scale = float32(scale)
		}
		return &a
	}
	m := hybridOpenDecoder(l, s, func(i int) []sublayer {
		one := sub(l, s, i, "attn_norm")
		switch {
		case layers[i].FFN > 0 && s.Experts > 0:
			one.blocks = []hybridBlock{mix.layer(l, i)}
		case layers[i].FFN > 0:
			one.blocks = []hybridBlock{&squaredMLP{l.PlainMLP(layers[i], i)}}
		case layers[i].KVHeads > 0:
			one.blocks = []hybridBlock{attention(i)}
		default:
			one.blocks = []hybridBlock{h.loadMamba2(l, i)}
		}
		return []sublayer{one}
	})
	l.Predictors(s, func(i int) model.Block { // it attends and then feeds forward, as one layer
		if layers[i].KVHeads == 0 || s.Experts == 0 {
			l.Fail("layer %d predicts further tokens and has no attention or no experts; only those with both are supported", i)
			return nil
		}
		feed := "ffn_norm"
		if !l.Has(fmt.Sprintf("blk.%d.%s.weight", i, feed)) {
			feed = "post_attention_norm"
		}
		return &layerBlock{m, []sublayer{sub(l, s, i, "attn_norm", attention(i)), sub(l, s, i, feed, mix.layer(l, i))}}
	})
	return m
}
