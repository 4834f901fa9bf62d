package oracle

import "math"

// gptOSS is OpenAI 2025: every other layer sees a window, heads have sinks, and the experts a SwiGLU that is
// clamped at 7, with 1.702 in the gate and 1 added to the other half.
func (m *Model) gptOSS(ids []int) [][]float64 {
	eps := m.floatOr("attention.layer_norm_rms_epsilon", 1e-5)
	heads, kvHeads := m.count("attention.head_count"), m.count("attention.head_count_kv")
	size, window := m.count("attention.key_length"), m.count("attention.sliding_window")
	factor := m.floatOr("rope.scaling.factor", 1)
	freq := yarn(size, m.floatOr("rope.freq_base", 10000), factor, float64(m.countOr("rope.scaling.original_context_length", 4096)), 32, 1, false)
	temperature := 0.1*math.Log(factor) + 1
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.tensor("token_embd.weight").row(id)
	}
	for l := range m.count("block_count") {
		linear := func(x []float64, name string) []float64 {
			return plus(m.tensor("blk.%d.%s.weight", l, name).mul(x), m.tensor("blk.%d.%s.bias", l, name).v)
		}
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			h := rmsNorm(x[i], m.tensor("blk.%d.attn_norm.weight", l), eps)
			q[i], k[i], v[i] = linear(h, "attn_q"), linear(h, "attn_k"), linear(h, "attn_v")
			for at := 0; at < len(q[i]); at += size {
				rotate(q[i][at:at+size], freq, i, temperature, true)
			}
			for at := 0; at < len(k[i]); at += size {
				rotate(k[i][at:at+size], freq, i, temperature, true)
			}
		}
		sinks := m.tensor("blk.%d.attn_sinks.weight", l).v
		for i := range x {
			first := 0
			if l%2 == 0 {
				first = max(0, i-window+1)
			}
			var all []float64
			for h := range heads {
				at := h / (heads / kvHeads) * size
				all = append(all, attend(q[i][h*size:(h+1)*size], part(k[first:i+1], at, size), part(v[first:i+1], at, size),
					1/math.Sqrt(float64(size)), &sinks[h])...)
			}
			x[i] = plus(x[i], linear(all, "attn_output"))
			x[i] = plus(x[i], m.clampedExperts(l, rmsNorm(x[i], m.tensor("blk.%d.post_attention_norm.weight", l), eps)))
		}
	}
	return m.head(x, eps)
}

// clampedExperts weighs the chosen experts by the softmax of their own logits.
func (m *Model) clampedExperts(l int, h []float64) []float64 {
	bias := func(name string) weights { return m.tensor("blk.%d.%s.bias", l, name) }
	expert := func(name string, e int, x []float64) []float64 {
		b := bias(name).row(e)
		return plus(m.tensor("blk.%d.%s.weight", l, name).rows(e*len(b), len(b)).mul(x), b)
	}
	logits := plus(m.tensor("blk.%d.ffn_gate_inp.weight", l).mul(h), bias("ffn_gate_inp").v)
	chosen := largest(logits, m.count("expert_used_count"))
	var of []float64
	for _, e := range chosen {
		of = append(of, logits[e])
	}
	out := make([]float64, len(h))
	for rank, p := range softmax(of) {
		e := chosen[rank]
		gate, up := expert("ffn_gate_exps", e, h), expert("ffn_up_exps", e, h)
		for i := range gate {
			g, u := math.Min(gate[i], 7), math.Max(-7, math.Min(up[i], 7))
			gate[i] = g * sigmoid(1.702*g) * (u + 1)
		}
		out = plus(out, times(p, expert("ffn_down_exps", e, gate)))
	}
	return out
}

// head is the final norm and the output matrix.
func (m *Model) head(x [][]float64, eps float64) [][]float64 {
	output := "token_embd.weight"
	if m.has("output.weight") {
		output = "output.weight"
	}
	out, states := make([][]float64, len(x)), make([][]float64, len(x))
	for i := range x {
		states[i] = rmsNorm(x[i], m.finalNorm(), eps)
		out[i] = m.tensor("%s", output).mul(states[i])
	}
	m.keepStates(states)
	return out
}
