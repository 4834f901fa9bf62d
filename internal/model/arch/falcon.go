package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("falcon", openFalcon) }

// openFalcon opens Falcon 1 and 2 (Almazrouei et al. 2023): both blocks of a layer read the same stream, through one norm
// or, in the models with several heads of keys, attention through attn_norm_2. Matrices have no biases, and heads rotate
// by halves. GELU is the approximation by tanh; the models were trained with the error function.
func openFalcon(l *model.Loader) model.Model {
	l.Refuse("attention.max_alibi_bias")
	s := centeredHyperparameters(l)
	rope := l.Rope(s, true)
	m := openCentered(l, s, l.LayerNorm("output_norm", s.Width, s.Eps), func(i int) centeredLayer {
		norm, mlp := blockNorm(l, s, i, "attn_norm"), l.PlainMLP(s, i)
		layer := centeredLayer{attnNorm: norm, attn: l.Attention(s, i, rope), ffn: mlp.Gelu}
		if l.Has(fmt.Sprintf("blk.%d.attn_norm_2.weight", i)) {
			layer.attnNorm, layer.ffnNorm = blockNorm(l, s, i, "attn_norm_2"), &norm
		}
		return layer
	})
	m.parallel = true
	return m
}
