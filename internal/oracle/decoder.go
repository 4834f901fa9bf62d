package oracle

import "math"

// decoder is the models between Llama and Gemma 2 (Touvron et al. 2023; Gemma team 2024; Abdin et al. 2024;
// OLMo team 2025) with heads that rotate by halves. The tensors of a file decide which norms it has.
func (m *Model) decoder(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	normed := func(x []float64, l int, name string) []float64 {
		if !m.Has("blk.%d.%s.weight", l, name) {
			return x
		}
		return RMSNorm(x, m.Tensor("blk.%d.%s.weight", l, name), eps)
	}
	embed := 1.0
	if m.Gemma() {
		embed = math.Sqrt(float64(m.Count("embedding_length")))
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = Times(embed, m.Tensor("token_embd.weight").Row(id))
	}
	for l := range m.Count("block_count") {
		in := make([][]float64, len(x))
		for i := range x {
			in[i] = normed(x[i], l, "attn_norm")
		}
		for i, a := range m.windowed(l, in, eps) {
			x[i] = Plus(x[i], normed(a, l, "post_attention_norm"))
			x[i] = Plus(x[i], normed(m.GatedBlock(l, normed(x[i], l, "ffn_norm")), l, "post_ffw_norm"))
		}
	}
	logits := m.head(x, eps)
	if limit := m.FloatOr("final_logit_softcapping", 0); limit > 0 {
		for _, row := range logits {
			for i := range row {
				row[i] = limit * math.Tanh(row[i]/limit)
			}
		}
	}
	return logits
}

// Gemma reports whether the model is a Gemma or a Gemma 2.
func (m *Model) Gemma() bool { return m.arch == "gemma" || m.arch == "gemma2" }

// slides reports whether a layer has the file's window: in Gemma 2 every other one, in OLMo 3 three of
// four, in others all.
func (m *Model) slides(l int) bool {
	switch m.arch {
	case "gemma2":
		return l%2 == 0
	case "olmo2":
		return l%4 != 3
	}
	return true
}

// windowed is the attention of a layer, from normed rows to its additions.
func (m *Model) windowed(l int, x [][]float64, eps float64) [][]float64 {
	heads, kvHeads, size := m.Count("attention.head_count"), m.Count("attention.head_count_kv"), m.Count("attention.key_length")
	window := m.CountOr("attention.sliding_window", 0)
	if window == 0 || !m.slides(l) {
		window = len(x)
	}
	freq, temperature := m.frequencies(l)
	q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
	for i := range x {
		q[i], k[i], v[i] = m.Queries(l, x[i])
		for _, p := range []struct {
			name string
			x    []float64
		}{{"attn_q_norm", q[i]}, {"attn_k_norm", k[i]}} {
			if m.Has("blk.%d.%s.weight", l, p.name) {
				w := m.Tensor("blk.%d.%s.weight", l, p.name)
				for at := 0; at < len(p.x); at += w.In {
					copy(p.x[at:], RMSNorm(p.x[at:at+w.In], w, eps))
				}
			}
			for at := 0; at < len(p.x); at += size {
				Rotate(p.x[at:at+2*len(freq)], freq, i, temperature, true)
			}
		}
	}
	limit := m.FloatOr("attn_logit_softcapping", 0)
	out := make([][]float64, len(x))
	for i := range x {
		first := max(0, i-window+1)
		var all []float64
		for h := range heads {
			at := h / (heads / kvHeads) * size
			last := i
			if i < m.Prefix {
				last = m.Prefix - 1
			}
			if m.Full != nil && m.Full[l] {
				last = len(x) - 1
			}
			scores := make([]float64, last+1-first)
			for j := range scores {
				scores[j] = dot(q[i][h*size:(h+1)*size], k[first+j][at:at+size]) / math.Sqrt(float64(size))
				if limit > 0 {
					scores[j] = limit * math.Tanh(scores[j]/limit)
				}
			}
			sum := make([]float64, size)
			for j, p := range Softmax(scores) {
				sum = Plus(sum, Times(p, v[first+j][at:at+size]))
			}
			all = append(all, sum...)
		}
		out[i] = m.Tensor("blk.%d.attn_output.weight", l).Mul(all)
	}
	return out
}

// Queries returns a row's queries, keys and values, from three tensors or one.
func (m *Model) Queries(l int, x []float64) (q, k, v []float64) {
	if m.Has("blk.%d.attn_qkv.weight", l) {
		all := m.Tensor("blk.%d.attn_qkv.weight", l).Mul(x)
		n := m.Count("attention.head_count") * m.Count("attention.key_length")
		kv := (len(all) - n) / 2
		return all[:n], all[n : n+kv], all[n+kv:]
	}
	linear := func(name string) []float64 {
		y := m.Tensor("blk.%d.%s.weight", l, name).Mul(x)
		if m.Has("blk.%d.%s.bias", l, name) {
			y = Plus(y, m.Tensor("blk.%d.%s.bias", l, name).V)
		}
		return y
	}
	return linear("attn_q"), linear("attn_k"), linear("attn_v")
}

// frequencies returns the rotation of a layer, and the factor on its results. Of LongRoPE's factors these are
// the long ones where a text can have more tokens than the short ones are for.
func (m *Model) frequencies(l int) (freq []float64, temperature float64) {
	dims, base := m.CountOr("rope.dimension_count", m.CountOr("attention.key_length", 0)), m.FloatOr("rope.freq_base", 10000)
	freq = Yarn(dims, base, 1, 4096, 32, 1, true) // stretched by 1: plain
	context := m.CountOr("rope.scaling.original_context_length", m.CountOr("context_length", 0))
	switch {
	case m.Has("rope_factors_long.weight"):
		factors := m.Tensor("rope_factors_short.weight")
		if m.Long {
			factors = m.Tensor("rope_factors_long.weight")
		}
		for i := range freq {
			freq[i] /= factors.V[i]
		}
		stretch := float64(m.Count("context_length")) / float64(context)
		return freq, math.Sqrt(1 + math.Log(stretch)/math.Log(float64(context)))
	case m.arch == "olmo2" && m.CountOr("attention.sliding_window", 0) > 0 && !m.slides(l):
		factor := m.FloatOr("rope.scaling.factor", 1)
		return Yarn(dims, base, factor, float64(context), 32, 1, true), 1 + 0.1*math.Log(factor)
	}
	return freq, 1
}

// GatedBlock is the feed-forward block, gate and up in two tensors or one.
func (m *Model) GatedBlock(l int, h []float64) []float64 {
	up := m.Tensor("blk.%d.ffn_up.weight", l).Mul(h)
	var gate []float64
	if m.Has("blk.%d.ffn_gate.weight", l) {
		gate = m.Tensor("blk.%d.ffn_gate.weight", l).Mul(h)
	} else {
		gate, up = up[:len(up)/2], up[len(up)/2:]
	}
	mid := make([]float64, len(up))
	for i, g := range gate {
		if m.Gemma() {
			mid[i] = gelu(g) * up[i]
		} else {
			mid[i] = g * sigmoid(g) * up[i]
		}
	}
	return m.Tensor("blk.%d.ffn_down.weight", l).Mul(mid)
}
