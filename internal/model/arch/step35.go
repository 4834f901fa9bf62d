package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("step35", openStep35) }

// openStep35 opens Step 3.5 (StepFun 2026): layers with a sliding window have more heads than the others, and rotate whole
// heads by a base of their own; the others rotate half of each. Queries and keys are normed head by head, and a gate for each
// head, of the rows that attention reads, multiplies what it gives. Behind the leading layers come mixtures of experts, chosen by sigmoids with a
// bias, and a shared expert; some layers clamp SwiGLU.
func openStep35(l *model.Loader) model.Model {
	s, layers := l.LayerHyperparameters()
	needExperts(l, s)
	windowed := l.Windows(l.Count("attention.sliding_window", 1, 1<<24), 0)
	rope, windowRope := step35Ropes(l, s)
	clampExperts, clampShared := layerClamps(l, "swiglu_clamp_exp"), layerClamps(l, "swiglu_clamp_shexp")
	l.SplitPredictors(&s)
	mix := mixture{hparams: s, ffn: l.Count("expert_feed_forward_length", 1, 1<<18), router: l.Router(s)}
	mix.shared = l.CountOr("expert_shared_feed_forward_length", mix.ffn, 1, 1<<18)
	mix.router.Sigmoid = mix.router.Sigmoid || l.CountOr("expert_gating_func", 0, 0, 1<<16) == 0
	return openDecoder(l, s, func(i int) decoderLayer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
		layer := decoderLayer{attn: l.Attention(layers[i], i, rope)}
		if windowed[i] {
			layer.attn.Rope = windowRope
		}
		layer.attn.QNorm, layer.attn.KNorm = l.VectorIf(name("attn_q_norm.weight"), s.KeySize), l.VectorIf(name("attn_k_norm.weight"), s.KeySize)
		if l.Has(name("attn_gate.weight")) {
			layer.attn.QKV = append(layer.attn.QKV, l.Projection(name("attn_gate"), layers[i].Heads, s.Width))
		}
		mix.hparams = layers[i]
		if mix.dense = 0; !l.Has(name("ffn_gate_inp.weight")) {
			mix.dense = i + 1
		}
		layer.mlp, layer.experts = mix.blocks(l, i)
		layer.mlp.Clamp, layer.experts.Clamp = clampShared[i], clampExperts[i]
		return layer
	})
}

// step35Ropes prepares the rotations of layers without a window, whose factors may be of Llama 3's kind, and of those with one.
func step35Ropes(l *model.Loader, s model.Hyperparameters) (rope, windowRope *compute.Rope) {
	config := l.RopeConfig(s, true)
	if config.Scaling != "" {
		l.Fail("step35.rope.scaling.type is %q; it must be none", config.Scaling)
	}
	window := config
	window.Factors = nil
	window.Base = l.FloatOr("rope.freq_base_swa", config.Base)
	window.Dims = l.CountOr("rope.dimension_count_swa", config.Dims, 2, max(2, s.KeySize))
	if config.Dims /= 2; config.Factors != nil {
		config.Factors = config.Factors[:config.Dims/2]
	}
	return l.NewRope(config), l.NewRope(window)
}

// layerClamps returns the limits of a key for each layer, 0 where the file has none. Tiny ones are none.
func layerClamps(l *model.Loader, name string) []float32 {
	const least = 1e-6
	limits := l.LayerFloatsOr(name, 0)
	for i, v := range limits {
		if v < 0 {
			l.Fail("value %d of %s.%s is %v; it must be 0 or more", i, l.Info().Arch, name, v)
		}
		if v <= least {
			limits[i] = 0
		}
	}
	return limits
}
