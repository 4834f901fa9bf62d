package oracle

import "math"

func init() { forwards["sambay"] = (*Model).sambaY }

// sambaY is Ren et al. 2025, section 2: Mamba and attention within a window by turns, up to the middle; Mamba, whose scan is the memory, and
// attention to all; then units that gate the memory, and attention to the keys and values of the middle. Each layer has a feed-forward
// block.
func (m *Model) sambaY(ids []int) [][]float64 {
	eps := m.floatOr("attention.layer_norm_epsilon", 1e-5)
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.tensor("token_embd.weight").row(id)
	}
	layers := m.count("block_count")
	var memory, k, v [][]float64
	for l := range layers {
		h, y := make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			h[i] = layerNorm(x[i], m.tensor("blk.%d.attn_norm.weight", l), m.tensor("blk.%d.attn_norm.bias", l), eps)
		}
		switch {
		case l%2 == 1:
			window := len(x)
			if l < layers/2 {
				window = m.count("attention.sliding_window")
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
			x[i] = plus(x[i], y[i])
			both := m.affine(l, "ffn_up", layerNorm(x[i], m.tensor("blk.%d.ffn_norm.weight", l), m.tensor("blk.%d.ffn_norm.bias", l), eps))
			x[i] = plus(x[i], m.affine(l, "ffn_down", gated(both[len(both)/2:], both[:len(both)/2])))
		}
	}
	head := "token_embd.weight"
	if m.has("output.weight") {
		head = "output.weight"
	}
	for i := range x {
		x[i] = m.tensor("%s", head).mul(layerNorm(x[i], m.tensor("output_norm.weight"), m.tensor("output_norm.bias"), eps))
	}
	return x
}

// keysOf returns the keys and the values of a layer: in its matrix they are behind the queries.
func (m *Model) keysOf(l int, h [][]float64) (k, v [][]float64) {
	queries, keys := m.count("attention.head_count")*m.count("attention.key_length"), m.count("attention.head_count_kv")*m.count("attention.key_length")
	for i := range h {
		all := m.affine(l, "attn_qkv", h[i])
		k, v = append(k, all[queries:queries+keys]), append(v, all[queries+keys:])
	}
	return k, v
}

// differences is differential attention (Ye et al. 2024, section 2.1), with pairs as in its published code: queries 2p and 2p+1, keys and
// values 2r and 2r+1, r of p as in grouped queries.
func (m *Model) differences(l int, h, k, v [][]float64, window int) [][]float64 {
	heads, kvHeads, size := m.count("attention.head_count"), m.count("attention.head_count_kv"), m.count("attention.key_length")
	first := 0.8 - 0.6*math.Exp(-0.3*float64(l))
	lambda := math.Exp(dot(m.tensor("blk.%d.attn_lambda_q1.weight", l).v, m.tensor("blk.%d.attn_lambda_k1.weight", l).v)) -
		math.Exp(dot(m.tensor("blk.%d.attn_lambda_q2.weight", l).v, m.tensor("blk.%d.attn_lambda_k2.weight", l).v)) + first
	out := make([][]float64, len(h))
	for i := range h {
		var q, all []float64
		if m.has("blk.%d.attn_q.weight", l) {
			q = m.affine(l, "attn_q", h[i])
		} else {
			q = m.affine(l, "attn_qkv", h[i])[:heads*size]
		}
		from := max(0, i+1-window)
		for p := range heads / 2 {
			r := p / (heads / kvHeads)
			both := part(v[from:i+1], 2*r*size, 2*size)
			one := attend(q[2*p*size:(2*p+1)*size], part(k[from:i+1], 2*r*size, size), both, 1/math.Sqrt(float64(size)), nil)
			two := attend(q[(2*p+1)*size:(2*p+2)*size], part(k[from:i+1], (2*r+1)*size, size), both, 1/math.Sqrt(float64(size)), nil)
			all = append(all, times(1-first, rmsNorm(plus(one, times(-lambda, two)), m.tensor("blk.%d.attn_sub_norm.weight", l), 1e-5))...)
		}
		out[i] = m.affine(l, "attn_output", all)
	}
	return out
}
