package arch

import "grove/internal/model"

func init() { model.Register("stablelm", openStableLM) }

// openStableLM opens StableLM 3B, Zephyr and 2 (Bellagente et al. 2024): Llama's layers with LayerNorm, and heads of which a
// part rotates by halves. Heads of the model of 12B parameters are normed, and both its blocks read the same stream
// through one norm: layers without ffn_norm tell it, as files write use_parallel_residual for models that have it not.
func openStableLM(l *model.Loader) model.Model {
	s := centeredHyperparameters(l)
	rope := l.Rope(s, true)
	parallel := !l.Has("blk.0.ffn_norm.weight")
	m := openCentered(l, s, l.LayerNorm("output_norm", s.Width, s.Eps), func(i int) centeredLayer {
		mlp := l.MLP(s, i)
		layer := centeredLayer{attnNorm: blockNorm(l, s, i, "attn_norm"), attn: l.Attention(s, i, rope), ffn: mlp.Silu}
		l.CenterHeads(&layer.attn)
		if !parallel {
			norm := blockNorm(l, s, i, "ffn_norm")
			layer.ffnNorm = &norm
		}
		return layer
	})
	m.parallel = parallel
	return m
}
