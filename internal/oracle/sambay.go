package oracle

import "math"

func init() { forwards["sambay"] = (*Model).sambaY }

// sambaY is Ren et al. 2025, section 2: Mamba and attention within a window by turns, up to the middle; Mamba, whose scan is the memory, and
// attention to all; then units that gate the memory, and attention to the keys and values of the middle. Each layer has a feed-forward
// block.
func (m *Model) sambaY(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_epsilon", 1e-5)
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
	}
	layers := m.Count("block_count")
	var memory, k, v [][]float64
	for l := range layers {
		h, y := make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			h[i] = layerNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), m.Tensor("blk.%d.attn_norm.bias", l), eps)
		}
		switch {
		case l%2 == 1:
			window := len(x)
			if l < layers/2 {
				window = m.Count("attention.sliding_window")
			}
			if l <= layers/2+1 {
				k, v = m.keysOf(l, h)
			}
			y = m.differences(l, h, k, v, window)
		case l <= layers/2:
			scan, z := m.scan1(l, h, eps)
			memory = scan // the last one stays
			for i := range y {
				y[i] = m.affine(l, "ssm_out", gated(scan[i], z[i]))
			}
		default:
			for i := range y {
				y[i] = m.affine(l, "gmu_out", gated(memory[i], m.affine(l, "gmu_in", h[i])))
			}
		}
		for i := range x {
			x[i] = Plus(x[i], y[i])
			both := m.affine(l, "ffn_up", layerNorm(x[i], m.Tensor("blk.%d.ffn_norm.weight", l), m.Tensor("blk.%d.ffn_norm.bias", l), eps))
			x[i] = Plus(x[i], m.affine(l, "ffn_down", gated(both[len(both)/2:], both[:len(both)/2])))
		}
	}
	head := "token_embd.weight"
	if m.Has("output.weight") {
		head = "output.weight"
	}
	for i := range x {
		x[i] = m.Tensor("%s", head).Mul(layerNorm(x[i], m.Tensor("output_norm.weight"), m.Tensor("output_norm.bias"), eps))
	}
	return x
}

// keysOf returns the keys and the values of a layer: in its matrix they are behind the queries.
func (m *Model) keysOf(l int, h [][]float64) (k, v [][]float64) {
	queries, keys := m.Count("attention.head_count")*m.Count("attention.key_length"), m.Count("attention.head_count_kv")*m.Count("attention.key_length")
	for i := range h {
		all := m.affine(l, "attn_qkv", h[i])
		k, v = append(k, all[queries:queries+keys]), append(v, all[queries+keys:])
	}
	return k, v
}

// differences is differential attention (Ye et al. 2024, section 2.1), with pairs as in its published code: queries 2p and 2p+1, keys and
// values 2r and 2r+1, r of p as in grouped queries.
func (m *Model) differences(l int, h, k, v [][]float64, window int) [][]float64 {
	heads, kvHeads, size := m.Count("attention.head_count"), m.Count("attention.head_count_kv"), m.Count("attention.key_length")
	first := 0.8 - 0.6*math.Exp(-0.3*float64(l))
	lambda := math.Exp(dot(m.Tensor("blk.%d.attn_lambda_q1.weight", l).V, m.Tensor("blk.%d.attn_lambda_k1.weight", l).V)) -
		math.Exp(dot(m.Tensor("blk.%d.attn_lambda_q2.weight", l).V, m.Tensor("blk.%d.attn_lambda_k2.weight", l).V)) + first
	out := make([][]float64, len(h))
	for i := range h {
		var q, all []float64
		if m.Has("blk.%d.attn_q.weight", l) {
			q = m.affine(l, "attn_q", h[i])
		} else {
			q = m.affine(l, "attn_qkv", h[i])[:heads*size]
		}
		from := max(0, i+1-window)
		for p := range heads / 2 {
			r := p / (heads / kvHeads)
			both := Part(v[from:i+1], 2*r*size, 2*size)
			one := Attend(q[2*p*size:(2*p+1)*size], Part(k[from:i+1], 2*r*size, size), both, 1/math.Sqrt(float64(size)), nil)
			two := Attend(q[(2*p+1)*size:(2*p+2)*size], Part(k[from:i+1], (2*r+1)*size, size), both, 1/math.Sqrt(float64(size)), nil)
			all = append(all, Times(1-first, RMSNorm(Plus(one, Times(-lambda, two)), m.Tensor("blk.%d.attn_sub_norm.weight", l), 1e-5))...)
		}
		out[i] = m.affine(l, "attn_output", all)
	}
	return out
}
