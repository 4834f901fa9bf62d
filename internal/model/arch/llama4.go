package arch

import (
	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/model"
)

func init() { model.Register("llama4", openLlama4) }

// Settings of Llama 4 that files lack.
const (
	llama4Chunk  = 8192 // tokens that layers with rotation attend within
	llama4Period = 4    // layers from one without rotation to the next
	llama4Wide   = 128  // experts of Maverick, which does not norm queries and keys
	llama4Temper = 0.1  // of queries in layers without rotation, by each chunk of positions
)

// openLlama4 opens Llama 4 (Meta AI 2025): mixtures in each or every other layer, where a sigmoid weighs what an expert
// reads, and a shared expert; norms of queries and keys behind the rotation; layers that rotate see a chunk of the text,
// and each fourth layer does not rotate, sees everything, and has a temperature that grows with the position. A file whose
// window is 0 has layers that all rotate and see everything.
func openLlama4(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	chunk, chunked := llama4Chunks(l)
	temperature := float32(l.RangeOr("attention.temperature_scale", llama4Temper, 0, 10))
	length := l.CountOr("attention.temperature_length", 0, 0, 1<<24)
	if length == 0 {
		length = chunk
	}
	var ffn, step int
	if s.Experts > 0 {
		ffn, step = l.Count("expert_feed_forward_length", 1, 1<<18), l.Count("interleave_moe_layer_step", 1, 128)
	}
	rope, ones := l.Rope(s, false), weight.Ones(s.KeySize)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		switch {
		case chunked && (i+1)%llama4Period == 0:
			layer.attn.Rope = nil
			layer.attn.Temperature, layer.attn.TemperLength, layer.attn.TemperFirst = temperature, length, 1
		case s.Experts != llama4Wide:
			layer.attn.QNorm, layer.attn.KNorm, layer.attn.NormAfterRope = ones, ones, true
		}
		if s.Experts == 0 || (i+1)%step != 0 {
			layer.mlp = l.MLP(s, i)
			return layer
		}
		layer.experts = l.Experts(s, i, ffn)
		layer.experts.Choice = compute.Router{ExpertsPerToken: s.ExpertsPerToken, Sigmoid: true}
		layer.experts.WeighInputs = true
		layer.mlp = l.SharedMLP(s, i, ffn)
		return layer
	})
}

// llama4Chunks gives layers their chunks, and reports whether there are any. Chunks have 8192 tokens unless
// attention.chunk_size says otherwise; attention.sliding_window is the same number, or 0: no chunks.
func llama4Chunks(l *model.Loader) (chunk int, chunked bool) {
	chunk = l.CountOr("attention.chunk_size", llama4Chunk, 1, 1<<24)
	switch window := l.CountOr("attention.sliding_window", chunk, 0, 1<<24); window {
	case 0:
		return chunk, false
	case chunk:
	default:
		l.Fail("llama4.attention.sliding_window is %d; it must be 0 or the size of chunks (%d)", window, chunk)
	}
	l.Chunks(chunk, llama4Period)
	return chunk, true
}
