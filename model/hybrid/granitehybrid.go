package hybrid

import (
	"math"

	"grove/compute"
	"grove/model"
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
	attention := scaleOr(l, "attention.scale", 1/math.Sqrt(float64(s.KeySize)))
	m := openDecoder(l, s, func(i int) []sublayer {
		mixer := sub(l, s, i, "attn_norm")
		if layers[i].KVHeads > 0 {
			a := l.Attention(layers[i], i, rope)
			a.Scale = attention
			mixer.blocks = []block{&a}
		} else {
			mixer.blocks = []block{h.loadMamba2(l, i)}
		}
		feed := sub(l, s, i, "ffn_norm")
		if s.Experts == 0 {
			feed.blocks = []block{&gatedMLP{l.MLP(layers[i], i)}}
			return []sublayer{mixer, feed}
		}
		feed.blocks = []block{&mixture{l.Experts(s, i, layers[i].FFN)}}
		if shared > 0 {
			feed.blocks = append(feed.blocks, &gatedMLP{l.SharedMLP(s, i, shared)})
		}
		return []sublayer{mixer, feed}
	})
	m.scales = scales{embed: scaleOr(l, "embedding_scale", 1), block: scaleOr(l, "residual_scale", 1), logits: 1 / scaleOr(l, "logit_scale", 1)}
	return m
}

// scaleOr reads a scale; 0 or a missing one stands for other.
func scaleOr(l *model.Loader, name string, other float64) float32 {
	if v := l.RangeOr(name, 0, 0, 1e4); v > 0 {
		return float32(v)
	}
	return float32(other)
}
