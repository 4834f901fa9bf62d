package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("command-r", openCommandR) }

// openCommandR opens Command R and R+ (Cohere 2024): both blocks of a layer read the same stream through one norm
// without a bias, the feed-forward block has a gate, and logits are scaled. Heads rotate by adjacent pairs; those of R+ are
// normed by LayerNorm.
func openCommandR(l *model.Loader) model.Model {
	s := centeredHyperparameters(l)
	rope := l.Rope(s, false)
	return openCohere(l, s, func(i int) model.Attention {
		attn := l.Attention(s, i, rope)
		l.CenterHeads(&attn)
		return attn
	})
}

// openCohere loads the layers of Command R around their attention.
func openCohere(l *model.Loader, s model.Hyperparameters, attention func(i int) model.Attention) model.Model {
	norm := func(name string) model.LayerNorm {
		return model.LayerNorm{Weight: l.Vector(name+".weight", s.Width), Eps: s.Eps}
	}
	m := openCentered(l, s, norm("output_norm"), func(i int) centeredLayer {
		mlp := l.MLP(s, i)
		return centeredLayer{attnNorm: norm(fmt.Sprintf("blk.%d.attn_norm", i)), attn: attention(i), ffn: mlp.Silu}
	})
	m.parallel = true
	m.scale = float32(l.RangeOr("logit_scale", 1.0/16, 1e-4, 1e4))
	return m
}
