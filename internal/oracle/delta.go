package oracle

import "math"

func init() {
	for _, arch := range []string{"kimi-linear", "qwen3next", "qwen35", "qwen35moe"} {
		forwards[arch] = (*Model).deltaNets
	}
}

// deltaNets is Qwen 3 Next (Qwen team 2025), Qwen 3.5 (2026) and Kimi Linear (Kimi Team 2025): gated delta nets, or Kimi delta attention, and
// between them gated attention, or latent attention that does not rotate.
func (m *Model) deltaNets(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	x := m.inputs(ids)
	feedNorm := "ffn_norm"
	if m.arch != "kimi-linear" {
		feedNorm = "post_attention_norm"
	}
	for l := range m.ownLayers() {
		h := make([][]float64, len(x))
		for i := range x {
			h[i] = RMSNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), eps)
		}
		var y [][]float64
		switch {
		case m.Has("blk.%d.ssm_f_a.weight", l):
			y = m.kimiDelta(l, h, eps)
		case m.Has("blk.%d.ssm_conv1d.weight", l):
			y = m.gatedDelta(l, h, eps)
		case m.arch == "kimi-linear":
			y = m.plainLatent(l, h, eps)
		default:
			y = m.gatedAttention(l, h, eps)
		}
		for i := range x {
			x[i] = Plus(x[i], y[i])
			x[i] = Plus(x[i], m.deltaFeed(l, RMSNorm(x[i], m.Tensor("blk.%d.%s.weight", l, feedNorm), eps)))
		}
	}
	return m.head(x, eps)
}

// deltaFeed is the feed-forward block of a layer. Kimi's experts are chosen by sigmoids; Qwen's by a softmax among the chosen, and a
// sigmoid of the row weighs the shared one.
func (m *Model) deltaFeed(l int, h []float64) []float64 {
	if !m.Has("blk.%d.ffn_gate_inp.weight", l) {
		return m.swiglu(l, "", 0, m.Count("feed_forward_length"), h)
	}
	ffn := m.Count("expert_feed_forward_length")
	if m.arch == "kimi-linear" {
		return Plus(m.sigmoidExperts(l, h), m.swiglu(l, "_shexp", 0, ffn*m.Count("expert_shared_count"), h))
	}
	logits := m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(h)
	chosen := largest(logits, m.Count("expert_used_count"))
	var of []float64
	for _, e := range chosen {
		of = append(of, logits[e])
	}
	out := Times(sigmoid(dot(m.Tensor("blk.%d.ffn_gate_inp_shexp.weight", l).V, h)), m.swiglu(l, "_shexp", 0, m.Count("expert_shared_feed_forward_length"), h))
	for rank, p := range Softmax(of) {
		out = Plus(out, Times(p, m.swiglu(l, "_exps", chosen[rank], ffn, h)))
	}
	return out
}

// gatedAttention has a gate behind the queries of each head. A part of each head rotates, by halves.
func (m *Model) gatedAttention(l int, h [][]float64, eps float64) [][]float64 {
	heads, kvHeads, size := m.Count("attention.head_count"), m.Count("attention.head_count_kv"), m.Count("attention.key_length")
	freq := make([]float64, m.Count("rope.dimension_count")/2)
	for i := range freq {
		freq[i] = math.Pow(m.FloatOr("rope.freq_base", 10000), -float64(i)/float64(len(freq)))
	}
	turn := func(x []float64, norm string, pos int) []float64 {
		y := RMSNorm(x, m.Tensor("blk.%d.%s.weight", l, norm), eps)
		Rotate(y[:2*len(freq)], freq, pos, 1, true)
		return y
	}
	k, v, out := make([][]float64, len(h)), make([][]float64, len(h)), make([][]float64, len(h))
	for i := range h {
		both := m.Tensor("blk.%d.attn_q.weight", l).Mul(h[i])
		keys := m.Tensor("blk.%d.attn_k.weight", l).Mul(h[i])
		v[i] = m.Tensor("blk.%d.attn_v.weight", l).Mul(h[i])
		for at := 0; at < len(keys); at += size {
			k[i] = append(k[i], turn(keys[at:at+size], "attn_k_norm", i)...)
		}
		var all []float64
		for head := range heads {
			q, gate := turn(both[2*head*size:(2*head+1)*size], "attn_q_norm", i), both[(2*head+1)*size:(2*head+2)*size]
			at := head / (heads / kvHeads) * size
			o := Attend(q, Part(k[:i+1], at, size), Part(v[:i+1], at, size), 1/math.Sqrt(float64(size)), nil)
			for j := range o {
				o[j] *= sigmoid(gate[j])
			}
			all = append(all, o...)
		}
		out[i] = m.Tensor("blk.%d.attn_output.weight", l).Mul(all)
	}
	return out
}

// plainLatent is multi-head latent attention whose keys do not rotate (Kimi Team 2025, section 4).
func (m *Model) plainLatent(l int, h [][]float64, eps float64) [][]float64 {
	a := &latent{heads: m.counts("attention.head_count")[l], rank: m.Count("attention.kv_lora_rank"), rope: m.Count("rope.dimension_count")}
	a.plain, a.value = m.Count("attention.key_length_mla")-a.rope, m.Count("attention.value_length_mla")
	k, v, out := make([][]float64, len(h)), make([][]float64, len(h)), make([][]float64, len(h))
	for i := range h {
		q := m.Tensor("blk.%d.attn_q.weight", l).Mul(h[i])
		k[i], v[i] = a.keysValues(m, l, h[i], i, eps) // without frequencies nothing turns
		var all []float64
		for head := range a.heads {
			n := a.key()
			all = append(all, Attend(q[head*n:(head+1)*n], Part(k[:i+1], head*n, n), Part(v[:i+1], head*a.value, a.value), 1/math.Sqrt(float64(n)), nil)...)
		}
		out[i] = m.Tensor("blk.%d.attn_output.weight", l).Mul(all)
	}
	return out
}

// past is the causal convolution of channels with their taps, the newest last, and SiLU. Rows before the first are 0.
func (m *Model) past(l int, name string, rows [][]float64) [][]float64 {
	w := m.Tensor("blk.%d.%s.weight", l, name)
	out := make([][]float64, len(rows))
	for t := range rows {
		out[t] = make([]float64, len(rows[t]))
		for c := range out[t] {
			sum := 0.0
			for j, tap := range w.Row(c) {
				if at := t - w.In + 1 + j; at >= 0 {
					sum += tap * rows[at][c]
				}
			}
			out[t][c] = sum * sigmoid(sum)
		}
	}
	return out
}

// deltaRule advances the state of a head, [dk][dv], by a row (Yang et al. 2024, equation 10): the state decays, value by value of the key,
// then what it holds at the key moves towards the value, and the query reads it.
func deltaRule(state [][]float64, q, k, v, decay []float64, beta float64) []float64 {
	held := make([]float64, len(v))
	for i := range state {
		state[i] = Times(decay[i], state[i])
		held = Plus(held, Times(k[i], state[i]))
	}
	out := make([]float64, len(v))
	for i := range state {
		for j := range v {
			state[i][j] += k[i] * beta * (v[j] - held[j])
		}
		out = Plus(out, Times(q[i], state[i]))
	}
	return out
}

// unit divides a vector by its length.
func unit(x []float64) []float64 { return Times(1/math.Sqrt(dot(x, x)), x) }

// newState is a state of zeros.
func newState(n int) [][]float64 {
	s := make([][]float64, n)
	for i := range s {
		s[i] = make([]float64, n)
	}
	return s
}

// gatedDelta is a gated delta net. Value head h reads the key of head h / group in Qwen 3 Next, and of head h mod keys in files of Qwen 3.5,
// whose heads were put in that order.
func (m *Model) gatedDelta(l int, h [][]float64, eps float64) [][]float64 {
	heads, keys, n := m.Count("ssm.time_step_rank"), m.Count("ssm.group_count"), m.Count("ssm.state_size")
	group := heads / keys
	rows := make([][]float64, len(h))
	for t := range h {
		rows[t] = m.Tensor("blk.%d.attn_qkv.weight", l).Mul(h[t])
	}
	states := make([][][]float64, heads)
	for i := range states {
		states[i] = newState(n)
	}
	a, dt := m.Tensor("blk.%d.ssm_a", l).V, m.Tensor("blk.%d.ssm_dt.bias", l).V
	out := make([][]float64, len(h))
	for t, x := range m.past(l, "ssm_conv1d", rows) {
		z := m.Tensor("blk.%d.attn_gate.weight", l).Mul(h[t])
		var all []float64
		for v := range heads {
			key := v / group
			beta, alpha := 0.0, 0.0
			if m.arch == "qwen3next" {
				both := m.Tensor("blk.%d.ssm_ba.weight", l).Mul(h[t])[2*key*group : 2*(key+1)*group]
				beta, alpha = both[v%group], both[group+v%group]
			} else {
				key = v % keys
				beta, alpha = m.Tensor("blk.%d.ssm_beta.weight", l).Mul(h[t])[v], m.Tensor("blk.%d.ssm_alpha.weight", l).Mul(h[t])[v]
			}
			decay := make([]float64, n)
			for i := range decay {
				decay[i] = math.Exp(a[v] * math.Log1p(math.Exp(alpha+dt[v])))
			}
			q, k := x[key*n:(key+1)*n], x[(keys+key)*n:(keys+key+1)*n]
			o := deltaRule(states[v], Times(1/math.Sqrt(float64(n)), unit(q)), unit(k), x[(2*keys+v)*n:(2*keys+v+1)*n], decay, sigmoid(beta))
			for j, y := range RMSNorm(o, m.Tensor("blk.%d.ssm_norm.weight", l), eps) {
				g := z[v*n+j]
				all = append(all, y*g*sigmoid(g))
			}
		}
		out[t] = m.Tensor("blk.%d.ssm_out.weight", l).Mul(all)
	}
	return out
}

// kimiDelta is Kimi delta attention (Kimi Team 2025, section 3): a decay for each value of a key.
func (m *Model) kimiDelta(l int, h [][]float64, eps float64) [][]float64 {
	n := m.Count("kda.head_dim")
	var in [3][][]float64
	for i, name := range []string{"q", "k", "v"} {
		rows := make([][]float64, len(h))
		for t := range h {
			rows[t] = m.Tensor("blk.%d.attn_%s.weight", l, name).Mul(h[t])
		}
		in[i] = m.past(l, "ssm_conv1d_"+name, rows)
	}
	a, dt := m.Tensor("blk.%d.ssm_a", l).V, m.Tensor("blk.%d.ssm_dt.bias", l).V
	states := make([][][]float64, len(a))
	for i := range states {
		states[i] = newState(n)
	}
	low := func(first, second string, x []float64) []float64 {
		return m.Tensor("blk.%d.%s.weight", l, second).Mul(m.Tensor("blk.%d.%s.weight", l, first).Mul(x))
	}
	out := make([][]float64, len(h))
	for t := range h {
		f, g, beta := low("ssm_f_a", "ssm_f_b", h[t]), low("ssm_g_a", "ssm_g_b", h[t]), m.Tensor("blk.%d.ssm_beta.weight", l).Mul(h[t])
		var all []float64
		for head := range a {
			at := head * n
			decay := make([]float64, n)
			for i := range decay {
				decay[i] = math.Exp(a[head] * math.Log1p(math.Exp(f[at+i]+dt[at+i])))
			}
			q, k, v := in[0][t][at:at+n], in[1][t][at:at+n], in[2][t][at:at+n]
			o := deltaRule(states[head], Times(1/math.Sqrt(float64(n)), unit(q)), unit(k), v, decay, sigmoid(beta[head]))
			for j, y := range RMSNorm(o, m.Tensor("blk.%d.ssm_norm.weight", l), eps) {
				all = append(all, y*sigmoid(g[at+j]))
			}
		}
		out[t] = m.Tensor("blk.%d.attn_output.weight", l).Mul(all)
	}
	return out
}
