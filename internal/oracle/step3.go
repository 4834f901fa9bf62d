package oracle

import "math"

// step3 is Step-3 (StepFun 2025, modeling_step3.py): queries come from a short row behind a norm, all heads read one key and
// one value, whole heads rotate by halves, and experts are weighed by the softmax among all.
func (m *Model) step3(ids []int) [][]float64 {
	eps := m.floatOr("attention.layer_norm_rms_epsilon", 1e-5)
	heads, size := m.count("attention.head_count"), m.count("attention.key_length")
	freq := make([]float64, size/2)
	for i := range freq {
		freq[i] = math.Pow(m.floatOr("rope.freq_base", 10000), -2*float64(i)/float64(size))
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.tensor("token_embd.weight").row(id)
	}
	for l := range m.count("block_count") {
		linear := func(name string, x []float64) []float64 { return m.tensor("blk.%d.%s.weight", l, name).mul(x) }
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			h := rmsNorm(x[i], m.tensor("blk.%d.attn_norm.weight", l), eps)
			q[i] = linear("attn_q_b", rmsNorm(linear("attn_q_a", h), m.tensor("blk.%d.attn_q_a_norm.weight", l), eps))
			k[i], v[i] = linear("attn_k", h), linear("attn_v", h)
			for at := 0; at < len(q[i]); at += size {
				rotate(q[i][at:at+size], freq, i, 1, true)
			}
			rotate(k[i], freq, i, 1, true)
		}
		for i := range x {
			var all []float64
			for h := range heads {
				all = append(all, attend(q[i][h*size:(h+1)*size], k[:i+1], v[:i+1], 1/math.Sqrt(float64(size)), nil)...)
			}
			x[i] = plus(x[i], linear("attn_output", all))
			h := rmsNorm(x[i], m.tensor("blk.%d.ffn_norm.weight", l), eps)
			if !m.has("blk.%d.ffn_gate_inp.weight", l) {
				x[i] = plus(x[i], m.swiglu(l, "", 0, m.count("feed_forward_length"), h))
				continue
			}
			x[i] = plus(x[i], m.swiglu(l, "_shexp", 0, m.count("expert_shared_feed_forward_length"), h))
			shares := softmax(linear("ffn_gate_inp", h))
			for _, e := range largest(shares, m.count("expert_used_count")) {
				x[i] = plus(x[i], times(shares[e], m.swiglu(l, "_exps", e, m.count("expert_feed_forward_length"), h)))
			}
		}
	}
	return m.head(x, eps)
}
