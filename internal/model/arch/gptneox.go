package arch

import "grove/internal/model"

func init() { model.Register("gptneox", openGPTNeoX) }

// openGPTNeoX opens GPT-NeoX and Pythia (Black et al. 2022, section 2.1; Biderman et al. 2023): GPT-2's blocks, with
// heads of which a part rotates by halves. Both blocks of a layer read the same stream, each through a norm of its own,
// unless the file says otherwise. GELU is the approximation by tanh; the models were trained with the error function.
func openGPTNeoX(l *model.Loader) model.Model {
	s := centeredHyperparameters(l)
	rope := l.Rope(s, true)
	m := openCentered(l, s, l.LayerNorm("output_norm", s.Width, s.Eps), func(i int) centeredLayer {
		ffnNorm, mlp := blockNorm(l, s, i, "ffn_norm"), l.PlainMLP(s, i)
		return centeredLayer{
			attnNorm: blockNorm(l, s, i, "attn_norm"), attn: l.Attention(s, i, rope), ffnNorm: &ffnNorm, ffn: mlp.Gelu,
		}
	})
	m.parallel = l.BoolOr("use_parallel_residual", true)
	return m
}
