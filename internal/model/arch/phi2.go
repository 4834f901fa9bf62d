package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("phi2", openPhi2) }

// openPhi2 opens Phi 1 to 2 (Gunasekar et al. 2023; Microsoft 2023): both blocks of a layer read the same stream through
// one norm, all matrices and the head have biases, and a part of each head rotates by halves.
func openPhi2(l *model.Loader) model.Model {
	s := centeredHyperparameters(l)
	rope := l.Rope(s, true)
	l.Need("output.weight")
	m := openCentered(l, s, l.LayerNorm("output_norm", s.Width, s.Eps), func(i int) centeredLayer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.bias", i, t) }
		l.Need(name("attn_output"), name("ffn_up"), name("ffn_down"))
		mlp := l.PlainMLP(s, i)
		return centeredLayer{attnNorm: blockNorm(l, s, i, "attn_norm"), attn: l.Attention(s, i, rope), ffn: mlp.Gelu}
	})
	m.parallel = true
	m.output.Bias = l.Vector("output.bias", m.info.Vocabulary)
	return m
}
