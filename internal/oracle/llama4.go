package oracle

import "math"

// llama4 is Meta AI 2025: three layers of four rotate pairs of neighbours, norm queries and keys without weights, and see
// the chunk of the text that they are in. The fourth sees everything, unrotated, and its queries grow with the logarithm of
// their chunk, of temperature_length positions counted from 1. Every interleave_moe_layer_step-th layer is a mixture, whose
// experts read the row times the sigmoid of the router, and a shared expert.
func (m *Model) llama4(ids []int) [][]float64 {
	eps := m.floatOr("attention.layer_norm_rms_epsilon", 1e-5)
	heads, kvHeads, size := m.count("attention.head_count"), m.count("attention.head_count_kv"), m.count("attention.key_length")
	freq := make([]float64, m.count("rope.dimension_count")/2)
	for i := range freq {
		freq[i] = math.Pow(m.floatOr("rope.freq_base", 10000), -float64(i)/float64(len(freq)))
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.tensor("token_embd.weight").row(id)
	}
	for l := range m.count("block_count") {
		rotates := l%4 != 3
		unit := func(row []float64, pos int) {
			for at := 0; at < len(row) && rotates; at += size {
				head := row[at : at+size]
				rotate(head, freq, pos, 1, false)
				copy(head, times(1/math.Sqrt(dot(head, head)/float64(size)+eps), head))
			}
		}
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			q[i], k[i], v[i] = m.queries(l, rmsNorm(x[i], m.tensor("blk.%d.attn_norm.weight", l), eps))
			unit(q[i], i)
			unit(k[i], i)
			if !rotates {
				chunk := math.Floor(float64(i+1) / float64(m.count("attention.temperature_length")))
				q[i] = times(1+m.floatOr("attention.temperature_scale", 0)*math.Log(1+chunk), q[i])
			}
		}
		keys, values := make([][][]float64, kvHeads), make([][][]float64, kvHeads)
		for h := range kvHeads {
			keys[h], values[h] = part(k, h*size, size), part(v, h*size, size)
		}
		for i := range x {
			first := 0
			if rotates {
				first = i - i%m.count("attention.chunk_size")
			}
			var all []float64
			for h := range heads {
				g := h / (heads / kvHeads)
				all = append(all, attend(q[i][h*size:(h+1)*size], keys[g][first:i+1], values[g][first:i+1], 1/math.Sqrt(float64(size)), nil)...)
			}
			x[i] = plus(x[i], m.tensor("blk.%d.attn_output.weight", l).mul(all))
			h := rmsNorm(x[i], m.tensor("blk.%d.ffn_norm.weight", l), eps)
			if (l+1)%m.count("interleave_moe_layer_step") == 0 {
				x[i] = plus(x[i], m.weighedInputs(l, h))
			} else {
				x[i] = plus(x[i], m.gatedBlock(l, h))
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
	shared := func(name string) weights { return m.tensor("blk.%d.%s_shexp.weight", l, name) }
	out := shared("ffn_down").mul(silu(shared("ffn_gate").mul(h), shared("ffn_up").mul(h)))
	logits := m.tensor("blk.%d.ffn_gate_inp.weight", l).mul(h)
	n := m.count("expert_feed_forward_length")
	for _, e := range largest(logits, m.count("expert_used_count")) {
		in := times(sigmoid(logits[e]), h)
		gate, up := m.tensor("blk.%d.ffn_gate_exps.weight", l).rows(e*n, n).mul(in), m.tensor("blk.%d.ffn_up_exps.weight", l).rows(e*n, n).mul(in)
		out = plus(out, m.tensor("blk.%d.ffn_down_exps.weight", l).rows(e*len(h), len(h)).mul(silu(gate, up)))
	}
	return out
}
