package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("mimo2", openMiMo2) }

// openMiMo2 opens MiMo-V2-Flash (Xiaomi 2026): most layers have a sliding window, more heads of keys, a base of their own for
// the rotation, and may have an attention sink for each head. A part of each head rotates, and values are smaller than keys.
// Experts are chosen by sigmoids with a bias; a layer without a router has a plain block.
func openMiMo2(l *model.Loader) model.Model {
	s, layers := l.LayerHyperparameters()
	needExperts(l, s)
	windowed := l.Windows(l.Count("attention.sliding_window", 1, 1<<24), 0)
	config := l.RopeConfig(s, true)
	rope := l.NewRope(config)
	config.Base = l.FloatOr("rope.freq_base_swa", config.Base)
	windowRope := l.NewRope(config)
	gain := float32(l.RangeOr("attention.value_scale", 0, 0, 1e4))
	l.SplitPredictors(&s)
	mix := mixture{ffn: l.Count("expert_feed_forward_length", 1, 1<<18), router: l.Router(s)}
	mix.router.Sigmoid, mix.router.Norm = true, true
	return openDecoder(l, s, func(i int) decoderLayer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
		layer := decoderLayer{attn: l.Attention(layers[i], i, rope)}
		if windowed[i] {
			layer.attn.Rope = windowRope
		}
		layer.attn.Sinks, layer.attn.Gain = l.VectorIf(name("attn_sinks.weight"), layers[i].Heads), gain
		mix.hparams = layers[i]
		if mix.dense = 0; !l.Has(name("ffn_gate_inp.weight")) {
			mix.dense = i + 1
		}
		layer.mlp, layer.experts = mix.blocks(l, i)
		return layer
	})
}
