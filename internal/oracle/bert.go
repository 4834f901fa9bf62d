package oracle

import "math"

// bert is Devlin et al. 2018: every token sees every other, norms stand behind the additions, positions and
// the first sentence's type are added to the embeddings. UniXcoder (Guo et al. 2022) is the same, with another GELU and the embeddings as its head; its tokens
// see what is before them, and those of the prefix each other.
func (m *Model) bert(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_epsilon", 1e-12)
	norm := func(x []float64, format string, args ...any) []float64 {
		return layerNorm(x, m.Tensor(format+".weight", args...), m.Tensor(format+".bias", args...), eps)
	}
	linear := func(x []float64, name string, l int) []float64 {
		return Plus(m.Tensor("blk.%d.%s.weight", l, name).Mul(x), m.Tensor("blk.%d.%s.bias", l, name).V)
	}
	act, both := gelu, m.arch == "bert"
	if !both {
		act = normal
	}
	heads := m.Count("attention.head_count")
	size := m.Count("embedding_length") / heads
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = Plus(m.Tensor("token_embd.weight").Row(id), m.Tensor("token_types.weight").Row(0))
		x[i] = norm(Plus(x[i], m.Tensor("position_embd.weight").Row(i)), "token_embd_norm")
	}
	for l := range m.Count("block_count") {
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			q[i], k[i], v[i] = linear(x[i], "attn_q", l), linear(x[i], "attn_k", l), linear(x[i], "attn_v", l)
		}
		for i := range x {
			seen := i + 1
			if i < m.Prefix {
				seen = m.Prefix
			}
			if both {
				seen = len(x)
			}
			var all []float64
			for h := range heads {
				at := h * size
				all = append(all, Attend(q[i][at:at+size], Part(k[:seen], at, size), Part(v[:seen], at, size), 1/math.Sqrt(float64(size)), nil)...)
			}
			x[i] = norm(Plus(x[i], linear(all, "attn_output", l)), "blk.%d.attn_output_norm", l)
			mid := linear(x[i], "ffn_up", l)
			for j := range mid {
				mid[j] = act(mid[j])
			}
			x[i] = norm(Plus(x[i], linear(mid, "ffn_down", l)), "blk.%d.layer_output_norm", l)
		}
	}
	if !both {
		for i := range x {
			x[i] = m.Tensor("token_embd.weight").Mul(x[i])
		}
	}
	return x
}
