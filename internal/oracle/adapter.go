package oracle

import "grove/weights/gguf"

// Adapter computes the module of a Kangaroo (Liu et al. 2024, section 3.1) over the streams of a text that its target gives behind the first layers, and
// returns the logits behind each token: one attention with a residual, a norm, and the target's head. It panics as [Model.Forward] does.
func Adapter(module, target *gguf.File, streams [][]float64) [][]float64 {
	m := &Model{file: module, arch: "kangaroo", tensors: map[string]weights{}}
	head := (&Model{file: target, tensors: map[string]weights{}}).tensor("output.weight")
	eps := m.floatOr("attention.layer_norm_rms_epsilon", 1e-5)
	in, out := make([][]float64, len(streams)), make([][]float64, len(streams))
	for i, x := range streams {
		in[i] = rmsNorm(x, m.tensor("blk.0.attn_norm.weight"), eps)
	}
	for i, a := range m.windowed(0, in, eps) {
		out[i] = head.mul(rmsNorm(plus(streams[i], a), m.tensor("output_norm.weight"), eps))
	}
	return out
}
