package oracle

import "math"

// phiMoE is Phi 3.5 MoE (Microsoft 2024, modeling_phimoe.py): LayerNorm, biases of all projections and of the head where the file has them, and two experts
// of a row, which SparseMixer weighs.
func (m *Model) phiMoE(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	norm := func(x []float64, format string, args ...any) []float64 {
		return layerNorm(x, m.Tensor(format+".weight", args...), m.Tensor(format+".bias", args...), eps)
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
	}
	for l := range m.Count("block_count") {
		in := make([][]float64, len(x))
		for i := range x {
			in[i] = norm(x[i], "blk.%d.attn_norm", l)
		}
		for i, a := range m.windowed(l, in, eps) {
			x[i] = Plus(Plus(x[i], a), m.Tensor("blk.%d.attn_output.bias", l).V)
			h := norm(x[i], "blk.%d.ffn_norm", l)
			experts, shares := sparseMixer(m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(h), m.FloatOr("router_jitter_noise", 0.01))
			for r, e := range experts {
				x[i] = Plus(x[i], Times(shares[r], m.swiglu(l, "_exps", e, m.Count("feed_forward_length"), h)))
			}
		}
	}
	for i := range x {
		x[i] = Plus(m.Tensor("output.weight").Mul(norm(x[i], "output_norm")), m.Tensor("output.bias").V)
	}
	return x
}

// sparseMixer is the function of that name, without training: the best expert with its share of the softmax over those that are not masked, and the same
// again without that expert. A score is masked where its distance from the best is more than twice the jitter of the larger of the two.
func sparseMixer(scores []float64, jitter float64) (experts [2]int, shares [2]float64) {
	left := append([]float64(nil), scores...)
	for r := range experts {
		best := largest(left, 1)[0]
		masked := append([]float64(nil), left...)
		for e, s := range scores {
			if (left[best]-s)/math.Max(math.Abs(s), left[best]) > 2*jitter {
				masked[e] = math.Inf(-1)
			}
		}
		experts[r], shares[r] = best, Softmax(masked)[best]
		left[best] = math.Inf(-1)
	}
	return experts, shares
}
