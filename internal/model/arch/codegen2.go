package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("codegen2", openCodeGen2) }

// openCodeGen2 opens CodeGen 1 and 2 (Nijkamp et al. 2023): GPT-J's layers, of which both blocks read the same stream through one
// norm, a part of each head rotates by pairs, and the feed-forward block and the head have biases. Its rows see what is before
// them; package infill asks for the text of a gap.
func openCodeGen2(l *model.Loader) model.Model {
	s := centeredHyperparameters(l)
	rope := l.Rope(s, false)
	l.Need("output.weight")
	m := openCentered(l, s, l.LayerNorm("output_norm", s.Width, s.Eps), func(i int) centeredLayer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.bias", i, t) }
		l.Need(name("ffn_up"), name("ffn_down"))
		mlp := l.PlainMLP(s, i)
		return centeredLayer{attnNorm: blockNorm(l, s, i, "attn_norm"), attn: l.Attention(s, i, rope), ffn: mlp.Gelu}
	})
	m.parallel = true
	m.output.Bias = l.Vector("output.bias", m.info.Vocabulary)
	return m
}
