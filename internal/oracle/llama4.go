package oracle

import "math"

// llama4 is Meta AI 2025: three layers of four rotate pairs of neighbours, norm queries and keys without weights, and see
// the chunk of the text that they are in. The fourth sees everything, unrotated, and its queries grow with the logarithm of
// their chunk, of temperature_length positions counted from 1. Every interleave_moe_layer_step-th layer is a mixture, whose
// experts read the row times the sigmoid of the router, and a shared expert.
func (m *Model) llama4(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	heads, kvHeads, size := m.Count("attention.head_count"), m.Count("attention.head_count_kv"), m.Count("attention.key_length")
	freq := make([]float64, m.Count("rope.dimension_count")/2)
	for i := range freq {
		freq[i] = math.Pow(m.FloatOr("rope.freq_base", 10000), -float64(i)/float64(len(freq)))
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
	}
	for l := range m.Count("block_count") {
		rotates := l%4 != 3
		unit := func(row []float64, pos int) {
			for at := 0; at < len(row) && rotates; at += size {
				head := row[at : at+size]
				Rotate(head, freq, pos, 1, false)
				copy(head, Times(1/math.Sqrt(dot(head, head)/float64(size)+eps), head))
			}
		}
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			q[i], k[i], v[i] = m.Queries(l, RMSNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), eps))
			unit(q[i], i)
			unit(k[i], i)
			if !rotates {
				chunk := math.Floor(float64(i+1) / float64(m.Count("attention.temperature_length")))
				q[i] = Times(1+m.FloatOr("attention.temperature_scale", 0)*math.Log(1+chunk), q[i])
			}
		}
		keys, values := make([][][]float64, kvHeads), make([][][]float64, kvHeads)
		for h := range kvHeads {
			keys[h], values[h] = Part(k, h*size, size), Part(v, h*size, size)
		}
		for i := range x {
			first := 0
			if rotates {
				first = i - i%m.Count("attention.chunk_size")
			}
			var all []float64
			for h := range heads {
				g := h / (heads / kvHeads)
				all = append(all, Attend(q[i][h*size:(h+1)*size], keys[g][first:i+1], values[g][first:i+1], 1/math.Sqrt(float64(size)), nil)...)
			}
			x[i] = Plus(x[i], m.Tensor("blk.%d.attn_output.weight", l).Mul(all))
			h := RMSNorm(x[i], m.Tensor("blk.%d.ffn_norm.weight", l), eps)
			if (l+1)%m.Count("interleave_moe_layer_step") == 0 {
				x[i] = Plus(x[i], m.weighedInputs(l, h))
			} else {
				x[i] = Plus(x[i], m.GatedBlock(l, h))
			}
		}
	}
	return m.head(x, eps)
}

// weighedInputs is the sum of the chosen experts, each of the row times its weight, and the shared expert.
func (m *Model) weighedInputs(l int, h []float64) []float64 {
	silu := func(gate, up []float64) []float64 {
		out := make([]float64, len(gate))
		for i, g := range gate {
			out[i] = g * sigmoid(g) * up[i]
		}
		return out
	}
	shared := func(name string) Weights { return m.Tensor("blk.%d.%s_shexp.weight", l, name) }
	out := shared("ffn_down").Mul(silu(shared("ffn_gate").Mul(h), shared("ffn_up").Mul(h)))
	logits := m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(h)
	n := m.Count("expert_feed_forward_length")
	for _, e := range largest(logits, m.Count("expert_used_count")) {
		in := Times(sigmoid(logits[e]), h)
		gate, up := m.Tensor("blk.%d.ffn_gate_exps.weight", l).rows(e*n, n).Mul(in), m.Tensor("blk.%d.ffn_up_exps.weight", l).rows(e*n, n).Mul(in)
		out = Plus(out, m.Tensor("blk.%d.ffn_down_exps.weight", l).rows(e*len(h), len(h)).Mul(silu(gate, up)))
	}
	return out
}
