package oracle

import "math"

// codeGen2 is Nijkamp et al. 2023 and the published code: both blocks of a layer read the normed stream, and pairs of the first
// values of a head rotate.
func (m *Model) codeGen2(ids []int) [][]float64 {
	eps := m.floatOr("attention.layer_norm_epsilon", 1e-5)
	heads, kvHeads, size := m.count("attention.head_count"), m.count("attention.head_count_kv"), m.count("attention.key_length")
	freq := make([]float64, m.countOr("rope.dimension_count", size)/2)
	for i := range freq {
		freq[i] = math.Pow(m.floatOr("rope.freq_base", 10000), -float64(i)/float64(len(freq)))
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.tensor("token_embd.weight").row(id)
	}
	for l := range m.count("block_count") {
		in, q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			in[i] = layerNorm(x[i], m.tensor("blk.%d.attn_norm.weight", l), m.tensor("blk.%d.attn_norm.bias", l), eps)
			q[i], k[i], v[i] = m.tensor("blk.%d.attn_q.weight", l).mul(in[i]), m.tensor("blk.%d.attn_k.weight", l).mul(in[i]), m.tensor("blk.%d.attn_v.weight", l).mul(in[i])
			for at := 0; at < len(q[i]); at += size {
				rotate(q[i][at:at+2*len(freq)], freq, i, 1, false)
			}
			for at := 0; at < len(k[i]); at += size {
				rotate(k[i][at:at+2*len(freq)], freq, i, 1, false)
			}
		}
		for i := range x {
			var all []float64
			for h := range heads {
				at := h / (heads / kvHeads) * size
				all = append(all, attend(q[i][h*size:(h+1)*size], part(k[:i+1], at, size), part(v[:i+1], at, size), 1/math.Sqrt(float64(size)), nil)...)
			}
			mid := plus(m.tensor("blk.%d.ffn_up.weight", l).mul(in[i]), m.tensor("blk.%d.ffn_up.bias", l).v)
			for j := range mid {
				mid[j] = gelu(mid[j])
			}
			x[i] = plus(x[i], m.tensor("blk.%d.attn_output.weight", l).mul(all))
			x[i] = plus(x[i], plus(m.tensor("blk.%d.ffn_down.weight", l).mul(mid), m.tensor("blk.%d.ffn_down.bias", l).v))
		}
	}
	for i := range x {
		h := layerNorm(x[i], m.tensor("output_norm.weight"), m.tensor("output_norm.bias"), eps)
		x[i] = plus(m.tensor("output.weight").mul(h), m.tensor("output.bias").v)
	}
	return x
}
