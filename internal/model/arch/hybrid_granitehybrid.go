package arch

import (
	"math"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("granitehybrid", openGraniteHybrid) }

// openGraniteHybrid opens Granite 4 (IBM 2025) and Bamba: layers of Mamba 2 and some that attend, with four scales, of
// embeddings, of what a block adds, of attention and of logits. Heads rotate where the file says so. A mixture has a
// shared expert.
func openGraniteHybrid(l *model.Loader) model.Model {
	s, layers := l.LayerHyperparameters()
	h := loadSSM2(l, s)
	shared := 0
	if s.Experts > 0 {
		shared = l.CountOr("expert_shared_feed_forward_length", 0, 0, 1<<18)
	}
	var rope *compute.Rope
	if l.BoolOr("rope.scaling.finetuned", true) { // the file's sign that heads rotate
		rope = l.Rope(s, false)
	}
	attention := hybridScaleOr(l, "attention.scale", 1/math.Sqrt(float64(s.KeySize)))
	m := hybridOpenDecoder(l, s, func(i int) []sublayer {
		mixer := sub(l, s, i, "attn_norm")
		if layers[i].KVHeads > 0 {
			a := l.Attention(layers[i], i, rope)
			a.Scale = attention
			mixer.blocks = []hybridBlock{&a}
		} else {
			mixer.blocks = []hybridBlock{h.loadMamba2(l, i)}
		}
		feed := sub(l, s, i, "ffn_norm")
		if s.Experts == 0 {
			feed.blocks = []hybridBlock{&gatedMLP{l.MLP(layers[i], i)}}
			return []sublayer{mixer, feed}
		}
		feed.blocks = []hybridBlock{&hybridMixture{l.Experts(s, i, layers[i].FFN)}}
		if shared > 0 {
			feed.blocks = append(feed.blocks, &gatedMLP{l.SharedMLP(s, i, shared)})
		}
		return []sublayer{mixer, feed}
	})
	m.scales = hybridScales{embed: hybridScaleOr(l, "embedding_scale", 1), block: hybridScaleOr(l, "residual_scale", 1), logits: 1 / hybridScaleOr(l, "logit_scale", 1)}
	return m
}

// hybridScaleOr reads a scale; 0 or a missing one stands for other.
func hybridScaleOr(l *model.Loader, name string, other float64) float32 {
	if v := l.RangeOr(name, 0, 0, 1e4); v > 0 {
		return float32(v)
	}
	return float32(other)
}
