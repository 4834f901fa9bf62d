package oracle

import "math"

// windowedMixture is Step 3.5 (StepFun 2026, modeling_step3p5.py) and MiMo-V2-Flash (Xiaomi 2026,
// modeling_mimo_v2_flash.py): layers with a window have other numbers of heads, and a base of their own for the rotation.
// Step norms queries and keys, multiplies each head by the sigmoid of a gate, rotates half a head in layers without a window, by
// frequencies that factors divide, and clamps the parts of SwiGLU. MiMo has sinks, smaller values, and a factor on values.
func (m *Model) windowedMixture(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	x := m.inputs(ids)
	for l := range m.ownLayers() {
		h := make([][]float64, len(x))
		for i := range x {
			h[i] = RMSNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), eps)
		}
		for i, a := range m.windowedAttention(l, h, eps) {
			x[i] = Plus(x[i], a)
			h := RMSNorm(x[i], m.Tensor("blk.%d.ffn_norm.weight", l), eps)
			if !m.Has("blk.%d.ffn_gate_inp.weight", l) {
				x[i] = Plus(x[i], m.clampedBlock(l, "", "swiglu_clamp_shexp", 0, m.Count("feed_forward_length"), h))
				continue
			}
			x[i] = Plus(x[i], m.sigmoidExperts(l, h))
			if m.arch == "step35" {
				x[i] = Plus(x[i], m.clampedBlock(l, "_shexp", "swiglu_clamp_shexp", 0, m.Count("expert_shared_feed_forward_length"), h))
			}
		}
	}
	return m.head(x, eps)
}

// windowedAttention is the attention of a layer, from normed rows to its additions.
func (m *Model) windowedAttention(l int, x [][]float64, eps float64) [][]float64 {
	heads, kvHeads, windowed := m.counts("attention.head_count")[l], m.counts("attention.head_count_kv")[l], m.bools("attention.sliding_window_pattern")[l]
	size, value := m.Count("attention.key_length"), m.Count("attention.value_length")
	freq := m.windowedFrequencies(windowed)
	q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
	for i := range x {
		q[i], k[i], v[i] = m.Queries(l, x[i])
		for _, p := range []struct {
			name string
			x    []float64
		}{{"attn_q_norm", q[i]}, {"attn_k_norm", k[i]}} {
			for at := 0; at < len(p.x); at += size {
				if m.Has("blk.%d.%s.weight", l, p.name) {
					copy(p.x[at:], RMSNorm(p.x[at:at+size], m.Tensor("blk.%d.%s.weight", l, p.name), eps))
				}
				Rotate(p.x[at:at+size], freq, i, 1, true)
			}
		}
	}
	out := make([][]float64, len(x))
	for i := range x {
		first := 0
		if windowed {
			first = max(0, i-m.Count("attention.sliding_window")+1)
		}
		var all []float64
		for h := range heads {
			group := h / (heads / kvHeads)
			var sink *float64
			if m.Has("blk.%d.attn_sinks.weight", l) {
				sink = &m.Tensor("blk.%d.attn_sinks.weight", l).V[h]
			}
			o := Attend(q[i][h*size:(h+1)*size], Part(k[first:i+1], group*size, size), Part(v[first:i+1], group*value, value), 1/math.Sqrt(float64(size)), sink)
			if m.Has("blk.%d.attn_gate.weight", l) {
				o = Times(sigmoid(dot(m.Tensor("blk.%d.attn_gate.weight", l).Row(h), x[i])), o)
			}
			all = append(all, Times(m.FloatOr("attention.value_scale", 1), o)...)
		}
		out[i] = m.Tensor("blk.%d.attn_output.weight", l).Mul(all)
	}
	return out
}

// windowedFrequencies returns the frequencies of the pairs of a head that rotate.
func (m *Model) windowedFrequencies(windowed bool) []float64 {
	dims, base := m.Count("rope.dimension_count"), m.FloatOr("rope.freq_base", 10000)
	if windowed {
		base = m.FloatOr("rope.freq_base_swa", 10000)
	}
	half := m.arch == "step35" && !windowed
	if half {
		dims /= 2
	}
	freq := make([]float64, dims/2)
	for i := range freq {
		if freq[i] = math.Pow(base, -2*float64(i)/float64(dims)); half {
			freq[i] /= m.Tensor("rope_freqs.weight").V[i]
		}
	}
	return freq
}

// clampedBlock is a gated block whose parts are clamped by the layer's limit: SiLU of the gate from above, the other from both sides.
func (m *Model) clampedBlock(l int, suffix, clamp string, expert, ffn int, h []float64) []float64 {
	limit := math.Inf(1)
	if v, ok, _ := m.file.Floats(m.arch + "." + clamp); ok && v[l] > 0 {
		limit = float64(v[l])
	}
	of := func(name string, out int) Weights {
		return m.Tensor("blk.%d.%s%s.weight", l, name, suffix).rows(expert*out, out)
	}
	gate, up := of("ffn_gate", ffn).Mul(h), of("ffn_up", ffn).Mul(h)
	for i, g := range gate {
		gate[i] = math.Min(g*sigmoid(g), limit) * math.Max(-limit, math.Min(up[i], limit))
	}
	return of("ffn_down", len(h)).Mul(gate)
}

// sigmoidExperts chooses by sigmoids with a bias and weighs by the shares of the chosen.
func (m *Model) sigmoidExperts(l int, h []float64) []float64 {
	affinity := m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(h)
	for e, v := range affinity {
		affinity[e] = sigmoid(v)
	}
	chosen := largest(Plus(affinity, m.Tensor("blk.%d.exp_probs_b.bias", l).V), m.Count("expert_used_count"))
	sum := 0.0
	for _, e := range chosen {
		sum += affinity[e]
	}
	out := make([]float64, len(h))
	for _, e := range chosen {
		weight := m.FloatOr("expert_weights_scale", 1) * affinity[e] / sum
		out = Plus(out, Times(weight, m.clampedBlock(l, "_exps", "swiglu_clamp_exp", e, m.Count("expert_feed_forward_length"), h)))
	}
	return out
}
