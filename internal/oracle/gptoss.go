package oracle

import "math"

// gptOSS is OpenAI 2025: every other layer sees a window, heads have sinks, and the experts a SwiGLU that is
// clamped at 7, with 1.702 in the gate and 1 added to the other half.
func (m *Model) gptOSS(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	heads, kvHeads := m.Count("attention.head_count"), m.Count("attention.head_count_kv")
	size, window := m.Count("attention.key_length"), m.Count("attention.sliding_window")
	factor := m.FloatOr("rope.scaling.factor", 1)
	freq := Yarn(size, m.FloatOr("rope.freq_base", 10000), factor, float64(m.CountOr("rope.scaling.original_context_length", 4096)), 32, 1, false)
	temperature := 0.1*math.Log(factor) + 1
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
	}
	for l := range m.Count("block_count") {
		linear := func(x []float64, name string) []float64 {
			return Plus(m.Tensor("blk.%d.%s.weight", l, name).Mul(x), m.Tensor("blk.%d.%s.bias", l, name).V)
		}
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			h := RMSNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), eps)
			q[i], k[i], v[i] = linear(h, "attn_q"), linear(h, "attn_k"), linear(h, "attn_v")
			for at := 0; at < len(q[i]); at += size {
				Rotate(q[i][at:at+size], freq, i, temperature, true)
			}
			for at := 0; at < len(k[i]); at += size {
				Rotate(k[i][at:at+size], freq, i, temperature, true)
			}
		}
		sinks := m.Tensor("blk.%d.attn_sinks.weight", l).V
		for i := range x {
			first := 0
			if l%2 == 0 {
				first = max(0, i-window+1)
			}
			var all []float64
			for h := range heads {
				at := h / (heads / kvHeads) * size
				all = append(all, Attend(q[i][h*size:(h+1)*size], Part(k[first:i+1], at, size), Part(v[first:i+1], at, size),
					1/math.Sqrt(float64(size)), &sinks[h])...)
			}
			x[i] = Plus(x[i], linear(all, "attn_output"))
			x[i] = Plus(x[i], m.clampedExperts(l, RMSNorm(x[i], m.Tensor("blk.%d.post_attention_norm.weight", l), eps)))
		}
	}
	return m.head(x, eps)
}

// clampedExperts weighs the chosen experts by the softmax of their own logits.
func (m *Model) clampedExperts(l int, h []float64) []float64 {
	bias := func(name string) Weights { return m.Tensor("blk.%d.%s.bias", l, name) }
	expert := func(name string, e int, x []float64) []float64 {
		b := bias(name).Row(e)
		return Plus(m.Tensor("blk.%d.%s.weight", l, name).rows(e*len(b), len(b)).Mul(x), b)
	}
	logits := Plus(m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(h), bias("ffn_gate_inp").V)
	chosen := largest(logits, m.Count("expert_used_count"))
	var of []float64
	for _, e := range chosen {
		of = append(of, logits[e])
	}
	out := make([]float64, len(h))
	for rank, p := range Softmax(of) {
		e := chosen[rank]
		gate, up := expert("ffn_gate_exps", e, h), expert("ffn_up_exps", e, h)
		for i := range gate {
			g, u := math.Min(gate[i], 7), math.Max(-7, math.Min(up[i], 7))
			gate[i] = g * sigmoid(1.702*g) * (u + 1)
		}
		out = Plus(out, Times(p, expert("ffn_down_exps", e, gate)))
	}
	return out
}

// head is the final norm and the output matrix.
func (m *Model) head(x [][]float64, eps float64) [][]float64 {
	output := "token_embd.weight"
	if m.Has("output.weight") {
		output = "output.weight"
	}
	out, states := make([][]float64, len(x)), make([][]float64, len(x))
	for i := range x {
		states[i] = RMSNorm(x[i], m.finalNorm(), eps)
		out[i] = m.Tensor("%s", output).Mul(states[i])
	}
	m.keepStates(states)
	return out
}
