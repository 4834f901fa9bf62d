package oracle

import "math"

// codeGen2 is Nijkamp et al. 2023 and the published code: both blocks of a layer read the normed stream, and pairs of the first
// values of a head rotate.
func (m *Model) codeGen2(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_epsilon", 1e-5)
	heads, kvHeads, size := m.Count("attention.head_count"), m.Count("attention.head_count_kv"), m.Count("attention.key_length")
	freq := make([]float64, m.CountOr("rope.dimension_count", size)/2)
	for i := range freq {
		freq[i] = math.Pow(m.FloatOr("rope.freq_base", 10000), -float64(i)/float64(len(freq)))
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
	}
	for l := range m.Count("block_count") {
		in, q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			in[i] = layerNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), m.Tensor("blk.%d.attn_norm.bias", l), eps)
			q[i], k[i], v[i] = m.Tensor("blk.%d.attn_q.weight", l).Mul(in[i]), m.Tensor("blk.%d.attn_k.weight", l).Mul(in[i]), m.Tensor("blk.%d.attn_v.weight", l).Mul(in[i])
			for at := 0; at < len(q[i]); at += size {
				Rotate(q[i][at:at+2*len(freq)], freq, i, 1, false)
			}
			for at := 0; at < len(k[i]); at += size {
				Rotate(k[i][at:at+2*len(freq)], freq, i, 1, false)
			}
		}
		for i := range x {
			var all []float64
			for h := range heads {
				at := h / (heads / kvHeads) * size
				all = append(all, Attend(q[i][h*size:(h+1)*size], Part(k[:i+1], at, size), Part(v[:i+1], at, size), 1/math.Sqrt(float64(size)), nil)...)
			}
			mid := Plus(m.Tensor("blk.%d.ffn_up.weight", l).Mul(in[i]), m.Tensor("blk.%d.ffn_up.bias", l).V)
			for j := range mid {
				mid[j] = gelu(mid[j])
			}
			x[i] = Plus(x[i], m.Tensor("blk.%d.attn_output.weight", l).Mul(all))
			x[i] = Plus(x[i], Plus(m.Tensor("blk.%d.ffn_down.weight", l).Mul(mid), m.Tensor("blk.%d.ffn_down.bias", l).V))
		}
	}
	for i := range x {
		h := layerNorm(x[i], m.Tensor("output_norm.weight"), m.Tensor("output_norm.bias"), eps)
		x[i] = Plus(m.Tensor("output.weight").Mul(h), m.Tensor("output.bias").V)
	}
	return x
}
