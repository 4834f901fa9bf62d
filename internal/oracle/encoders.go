package oracle

import "math"

// normal is GELU by the normal distribution (Hendrycks and Gimpel 2016).
func normal(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }

func silu(x float64) float64 { return x * sigmoid(x) }

// linear is a projection of a layer with the bias that the file has.
func (m *Model) linear(l int, name string, x []float64) []float64 {
	y := m.Tensor("blk.%d.%s.weight", l, name).Mul(x)
	if m.Has("blk.%d.%s.bias", l, name) {
		y = Plus(y, m.Tensor("blk.%d.%s.bias", l, name).V)
	}
	return y
}

// centred is LayerNorm by a name, with the bias that the file has; without the weight it is nothing.
func (m *Model) centred(x []float64, name string, eps float64) []float64 {
	if !m.Has("%s.weight", name) {
		return x
	}
	bias := Weights{V: make([]float64, len(x))}
	if m.Has("%s.bias", name) {
		bias = m.Tensor("%s.bias", name)
	}
	return layerNorm(x, m.Tensor("%s.weight", name), bias, eps)
}

// of names a tensor of a layer.
func of(l int, name string) string { return "blk." + string(rune('0'+l)) + "." + name }

// bothWays is attention of all tokens to all, between its projections: rotation by halves or in pairs, ALiBi on both sides, and a window of half on
// each side of a token; 0: none.
func (m *Model) bothWays(l int, x [][]float64, base float64, halves bool, half int) [][]float64 {
	heads := m.Count("attention.head_count")
	kvHeads := m.CountOr("attention.head_count_kv", heads)
	size := m.CountOr("attention.key_length", len(x[0])/heads)
	q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
	for i := range x {
		if m.Has("blk.%d.attn_qkv.weight", l) {
			all := m.linear(l, "attn_qkv", x[i])
			q[i], k[i], v[i] = all[:heads*size], all[heads*size:(heads+kvHeads)*size], all[(heads+kvHeads)*size:]
		} else {
			q[i], k[i], v[i] = m.linear(l, "attn_q", x[i]), m.linear(l, "attn_k", x[i]), m.linear(l, "attn_v", x[i])
		}
		for name, p := range map[string]*[]float64{"attn_q_norm": &q[i], "attn_k_norm": &k[i]} {
			switch {
			case m.arch == "gemma-embedding":
				for at := 0; at < len(*p); at += size {
					copy((*p)[at:], RMSNorm((*p)[at:at+size], m.Tensor("blk.%d.%s.weight", l, name), m.FloatOr("attention.layer_norm_rms_epsilon", 0)))
				}
			default:
				*p = m.centred(*p, of(l, name), m.FloatOr("attention.layer_norm_epsilon", 0))
			}
			if base > 0 {
				freq := make([]float64, size/2)
				for j := range freq {
					freq[j] = math.Pow(base, -2*float64(j)/float64(size))
				}
				for at := 0; at < len(*p); at += size {
					Rotate((*p)[at:at+size], freq, i, 1, halves)
				}
			}
		}
	}
	out := make([][]float64, len(x))
	for i := range x {
		for h := range heads {
			at := h / (heads / kvHeads) * size
			var scores []float64
			var values [][]float64
			for j := range x {
				distance := math.Abs(float64(i - j))
				if half > 0 && distance > float64(half) {
					continue
				}
				score := dot(q[i][h*size:(h+1)*size], k[j][at:at+size]) / math.Sqrt(float64(size))
				if m.arch == "jina-bert-v2" {
					score -= distance * slope(h, heads)
				}
				scores, values = append(scores, score), append(values, v[j][at:at+size])
			}
			one := make([]float64, size)
			for j, p := range Softmax(scores) {
				one = Plus(one, Times(p, values[j]))
			}
			out[i] = append(out[i], one...)
		}
		out[i] = m.linear(l, "attn_output", out[i])
	}
	return out
}

// slope is that of a head (Press et al. 2022): powers of 2^(-8/n), for n heads of a power of 2; of others those of the power below, and then
// each second one of the power above.
func slope(h, heads int) float64 {
	n := math.Pow(2, math.Floor(math.Log2(float64(heads))))
	if float64(h) < n {
		return math.Pow(2, -8/n*float64(h+1))
	}
	return math.Pow(2, -4/n*(2*(float64(h)-n)+1))
}

// inner is the feed-forward block of a layer, with a gate in front of what it gates in one tensor, in one of its own, or without.
func (m *Model) inner(l int, x []float64, act func(float64) float64) []float64 {
	up := m.linear(l, "ffn_up", x)
	n := m.Count("feed_forward_length")
	mid := make([]float64, n)
	for j := range mid {
		switch {
		case m.Has("blk.%d.ffn_gate.weight", l):
			mid[j] = act(dot(m.Tensor("blk.%d.ffn_gate.weight", l).Row(j), x)) * up[j]
		case len(up) == 2*n:
			mid[j] = act(up[j]) * up[n+j]
		default:
			mid[j] = act(up[j])
		}
	}
	return m.linear(l, "ffn_down", mid)
}

// plainExperts is a mixture of blocks without gates; the weights are those of a softmax over all experts.
func (m *Model) plainExperts(l int, x []float64) []float64 {
	p := Softmax(m.linear(l, "ffn_gate_inp", x))
	n := m.Count("feed_forward_length")
	out := make([]float64, len(x))
	for _, e := range largest(p, m.Count("expert_used_count")) {
		mid := m.Tensor("blk.%d.ffn_up_exps.weight", l).rows(e*n, n).Mul(x)
		for j := range mid {
			mid[j] = normal(mid[j])
		}
		out = Plus(out, Times(p[e], m.Tensor("blk.%d.ffn_down_exps.weight", l).rows(e*len(x), len(x)).Mul(mid)))
	}
	if m.Has("blk.%d.ffn_exps.bias", l) {
		out = Plus(out, m.Tensor("blk.%d.ffn_exps.bias", l).Row(0))
	}
	return out
}

// normedBehind is BERT with what its successors changed: Nomic Embed 1 (Nussbaum et al. 2024) and 2 (2025), jina-embeddings 2 (Günther et al. 2023) and
// 3 (Sturua et al. 2024).
func (m *Model) normedBehind(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_epsilon", 1e-12)
	base, act := m.FloatOr("rope.freq_base", 10000), normal
	if m.arch == "jina-bert-v2" {
		base = 0
	}
	if m.arch == "nomic-bert" {
		act = silu
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
		if m.Has("token_types.weight") {
			x[i] = Plus(x[i], m.Tensor("token_types.weight").Row(0))
		}
		x[i] = m.centred(x[i], "token_embd_norm", eps)
	}
	for l := range m.Count("block_count") {
		attn := m.bothWays(l, x, base, true, 0)
		for i := range x {
			y := m.centred(Plus(x[i], attn[i]), of(l, "attn_output_norm"), eps)
			if m.Has("blk.%d.attn_norm_2.weight", l) {
				y = m.centred(Plus(y, x[i]), of(l, "attn_norm_2"), eps)
			}
			f := []float64(nil)
			if m.Has("blk.%d.ffn_up_exps.weight", l) {
				f = m.plainExperts(l, y)
			} else {
				f = m.inner(l, y, act)
			}
			x[i] = m.centred(Plus(y, f), of(l, "layer_output_norm"), eps)
		}
	}
	return x
}

// normedBefore is the encoders with norms before their blocks: ModernBERT (Warner et al. 2024), EuroBERT (Boizard et al. 2025), NeoBERT (Le Breton et al.
// 2025), EmbeddingGemma (Schechter Vera et al. 2025).
func (m *Model) normedBefore(ids []int) [][]float64 {
	norm := func(x []float64, name string) []float64 {
		switch {
		case !m.Has("%s.weight", name):
			return x
		case m.arch == "modern-bert":
			return m.centred(x, name, m.FloatOr("attention.layer_norm_epsilon", 1e-5))
		}
		return RMSNorm(x, m.Tensor("%s.weight", name), m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5))
	}
	act, last := silu, "output_norm"
	switch m.arch {
	case "modern-bert":
		act = normal
	case "gemma-embedding":
		act = gelu
	case "neo-bert":
		last = "enc.output_norm"
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
		if m.arch == "gemma-embedding" {
			x[i] = Times(math.Sqrt(float64(len(x[i]))), x[i])
		}
		x[i] = norm(x[i], "token_embd_norm")
	}
	for l := range m.Count("block_count") {
		base, half := m.FloatOr("rope.freq_base", 10000), 0
		if m.arch == "modern-bert" && l%3 != 0 || m.arch == "gemma-embedding" && l%6 != 5 {
			base, half = m.FloatOr("rope.freq_base_swa", 0), m.Count("attention.sliding_window")/2
		}
		in := make([][]float64, len(x))
		for i := range x {
			in[i] = norm(x[i], of(l, "attn_norm"))
		}
		attn := m.bothWays(l, in, base, m.arch != "neo-bert", half)
		for i := range x {
			x[i] = Plus(x[i], norm(attn[i], of(l, "post_attention_norm")))
			x[i] = Plus(x[i], norm(m.inner(l, norm(x[i], of(l, "ffn_norm")), act), of(l, "post_ffw_norm")))
		}
	}
	for i := range x {
		x[i] = norm(x[i], last)
	}
	return x
}
