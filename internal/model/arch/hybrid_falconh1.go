package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("falcon-h1", openFalconH1) }

// openFalconH1 opens Falcon-H1 (TII 2025): attention and Mamba 2 side by side in every layer, which read the same rows.
// The factors of its blocks are in the weights of the file.
func openFalconH1(l *model.Loader) model.Model {
	s, layers := l.LayerHyperparameters()
	h := loadSSM2(l, s)
	rope := l.Rope(s, true)
	return hybridOpenDecoder(l, s, func(i int) []sublayer {
		needAttention(l, layers[i], i)
		a := l.Attention(layers[i], i, rope)
		mixer := sub(l, s, i, "attn_norm", &a, h.loadMamba2(l, i))
		return []sublayer{mixer, {norm: falconNorm(l, s, i), blocks: []hybridBlock{&gatedMLP{l.MLP(layers[i], i)}}}}
	})
}

// falconNorm loads the norm of the feed-forward block, whose name may lack its end.
func falconNorm(l *model.Loader, s model.Hyperparameters, i int) compute.Vector {
	name := fmt.Sprintf("blk.%d.ffn_norm", i)
	if !l.Has(name) {
		name += ".weight"
	}
	return l.Vector(name, s.Width)
}

// needAttention refuses a layer without attention.
func needAttention(l *model.Loader, s model.Hyperparameters, i int) {
	if s.KVHeads == 0 {
		l.Fail("layer %d has no heads; %s attends in every layer", i, l.Info().Arch)
	}
}
