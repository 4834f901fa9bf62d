package oracle

import "math"

// bert is Devlin et al. 2018: every token sees every other, norms stand behind the additions, positions and
// the first sentence's type are added to the embeddings. UniXcoder (Guo et al. 2022) is the same, with another GELU and the embeddings as its head; its tokens
// see what is before them, and those of the prefix each other.
func (m *Model) bert(ids []int) [][]float64 {
	eps := m.floatOr("attention.layer_norm_epsilon", 1e-12)
	norm := func(x []float64, format string, args ...any) []float64 {
		return layerNorm(x, m.tensor(format+".weight", args...), m.tensor(format+".bias", args...), eps)
	}
	linear := func(x []float64, name string, l int) []float64 {
		return plus(m.tensor("blk.%d.%s.weight", l, name).mul(x), m.tensor("blk.%d.%s.bias", l, name).v)
	}
	act, both := gelu, m.arch == "bert"
	if !both {
		act = normal
	}
	heads := m.count("attention.head_count")
	size := m.count("embedding_length") / heads
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = plus(m.tensor("token_embd.weight").row(id), m.tensor("token_types.weight").row(0))
		x[i] = norm(plus(x[i], m.tensor("position_embd.weight").row(i)), "token_embd_norm")
	}
	for l := range m.count("block_count") {
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
				all = append(all, attend(q[i][at:at+size], part(k[:seen], at, size), part(v[:seen], at, size), 1/math.Sqrt(float64(size)), nil)...)
			}
			x[i] = norm(plus(x[i], linear(all, "attn_output", l)), "blk.%d.attn_output_norm", l)
			mid := linear(x[i], "ffn_up", l)
			for j := range mid {
				mid[j] = act(mid[j])
			}
			x[i] = norm(plus(x[i], linear(mid, "ffn_down", l)), "blk.%d.layer_output_norm", l)
		}
	}
	if !both {
		for i := range x {
			x[i] = m.tensor("token_embd.weight").mul(x[i])
		}
	}
	return x
}
