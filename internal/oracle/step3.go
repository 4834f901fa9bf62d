package oracle

import "math"

// step3 is Step-3 (StepFun 2025, modeling_step3.py): queries come from a short row behind a norm, all heads read one key and
// one value, whole heads rotate by halves, and experts are weighed by the softmax among all.
func (m *Model) step3(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	heads, size := m.Count("attention.head_count"), m.Count("attention.key_length")
	freq := make([]float64, size/2)
	for i := range freq {
		freq[i] = math.Pow(m.FloatOr("rope.freq_base", 10000), -2*float64(i)/float64(size))
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
	}
	for l := range m.Count("block_count") {
		linear := func(name string, x []float64) []float64 { return m.Tensor("blk.%d.%s.weight", l, name).Mul(x) }
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			h := RMSNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), eps)
			q[i] = linear("attn_q_b", RMSNorm(linear("attn_q_a", h), m.Tensor("blk.%d.attn_q_a_norm.weight", l), eps))
			k[i], v[i] = linear("attn_k", h), linear("attn_v", h)
			for at := 0; at < len(q[i]); at += size {
				Rotate(q[i][at:at+size], freq, i, 1, true)
			}
			Rotate(k[i], freq, i, 1, true)
		}
		for i := range x {
			var all []float64
			for h := range heads {
				all = append(all, Attend(q[i][h*size:(h+1)*size], k[:i+1], v[:i+1], 1/math.Sqrt(float64(size)), nil)...)
			}
			x[i] = Plus(x[i], linear("attn_output", all))
			h := RMSNorm(x[i], m.Tensor("blk.%d.ffn_norm.weight", l), eps)
			if !m.Has("blk.%d.ffn_gate_inp.weight", l) {
				x[i] = Plus(x[i], m.swiglu(l, "", 0, m.Count("feed_forward_length"), h))
				continue
			}
			x[i] = Plus(x[i], m.swiglu(l, "_shexp", 0, m.Count("expert_shared_feed_forward_length"), h))
			shares := Softmax(linear("ffn_gate_inp", h))
			for _, e := range largest(shares, m.Count("expert_used_count")) {
				x[i] = Plus(x[i], Times(shares[e], m.swiglu(l, "_exps", e, m.Count("expert_feed_forward_length"), h)))
			}
		}
	}
	return m.head(x, eps)
}
