package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("unixcoder", openUniXcoder) }

// uniXcoder is UniXcoder (Guo et al. 2022): RoBERTa, whose norms come after the additions, with a head that is the table of embeddings. A token that begins
// a text says whether its tokens see each other, what is before them, or each other and an answer follows (package tokenizer has the modes). GELU is by the normal
// distribution, as in the published code.
type uniXcoder struct{ *bert }

func openUniXcoder(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	if !l.BoolOr("attention.causal", true) {
		l.Fail("unixcoder.attention.causal is false; the model generates text too")
	}
	l.Info().Full = true
	m := loadBERT(l, s, func(i int, layer *bertLayer) {
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"} {
			l.Need(fmt.Sprintf("blk.%d.%s.bias", i, name))
		}
		layer.ffn = plain(l, s, i)
	})
	m.positions = l.Matrix("position_embd.weight", l.Info().Context, s.Width)
	return &uniXcoder{m}
}

// Forward implements [model.Model].
func (m *uniXcoder) Forward(x *compute.Exec) {
	m.layersOf(x)
	if h, ok := x.Outputs(); ok {
		x.Logits(h, compute.Projection{Matrix: m.embed}, 0)
	}
}
