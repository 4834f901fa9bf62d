package arch

import (
	"grove/compute"
	"grove/model"
)

func init() { model.Register("llama4", openLlama4) }

// Settings of Llama 4 that files lack.
const (
	llama4Chunk  = 8192 // tokens that layers with rotation attend within
	llama4Period = 4    // layers from one without rotation to the next
	llama4Wide   = 128  // experts of Maverick, which does not norm queries and keys
)

// openLlama4 opens Llama 4 (Meta AI 2025): mixtures in each or every other layer, where a sigmoid weighs what an expert
// reads, and a shared expert; norms of queries and keys behind the rotation; each fourth layer without rotation. The
// context is less than one chunk: within it layers with chunks attend to all, and queries have no temperature.
func openLlama4(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	l.Info().Context = min(l.Info().Context, llama4Chunk-1)
	l.CountOr("attention.sliding_window", llama4Chunk, llama4Chunk, llama4Chunk)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	step := l.Count("interleave_moe_layer_step", 1, 128)
	rope, ones := l.Rope(s, false), l.Ones(s.Size)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		switch {
		case (i+1)%llama4Period == 0:
			layer.attn.Rope = nil
		case s.Experts != llama4Wide:
			layer.attn.QNorm, layer.attn.KNorm, layer.attn.NormTurned = ones, ones, true
		}
		if (i+1)%step != 0 {
			layer.mlp = l.MLP(s, i)
			return layer
		}
		layer.experts = l.Experts(s, i, ffn)
		layer.experts.Choice = compute.Router{Used: s.Used, Sigmoid: true}
		layer.experts.WeighInputs = true
		layer.mlp = l.SharedMLP(s, i, ffn)
		return layer
	})
}
