package arch

import (
	"math"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("granite", openGranite) }

// openGranite opens Granite 3 (IBM 2024), dense or a mixture of experts with or without a shared one: Llama's layers with
// four scales, of embeddings, of what a block adds, of attention and of logits.
func openGranite(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	shared := 0
	if s.Experts > 0 {
		shared = l.CountOr("expert_shared_feed_forward_length", 0, 0, 1<<18)
	}
	var rope *compute.Rope
	if l.BoolOr("rope.scaling.finetuned", true) { // the file's sign that heads rotate
		rope = l.Rope(s, false)
	}
	attention := scaleOr(l, "attention.scale", 1/math.Sqrt(float64(s.KeySize)))
	m := openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		layer.attn.Scale = attention
		if s.Experts == 0 {
			layer.mlp = l.MLP(s, i)
			return layer
		}
		layer.experts = l.Experts(s, i, s.FFN)
		if shared > 0 {
			layer.mlp = l.SharedMLP(s, i, shared)
		}
		return layer
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
