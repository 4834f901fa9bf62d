package oracle

import (
	"fmt"
	"math"
)

func init() {
	for _, arch := range []string{"falcon-h1", "granitehybrid", "jamba", "mamba", "mamba2", "nemotron_h", "nemotron_h_moe"} {
		forwards[arch] = (*Model).hybrid
	}
}

// hybrid is the models with recurrences of Mamba 1 and 2, in the layouts of Jamba (Lieber et al. 2024), Falcon-H1 (2025),
// Granite 4 (2025) and Nemotron-H (2025). The tensors of a layer decide what it has; what stands side by side reads the
// same normed rows.
func (m *Model) hybrid(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = Times(m.scale("embedding_scale", 1), m.Tensor("token_embd.weight").Row(id))
	}
	residual := m.scale("residual_scale", 1)
	for l := range m.Count("block_count") {
		h := make([][]float64, len(x))
		for i := range x {
			h[i] = RMSNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), eps)
		}
		add := func(y [][]float64) {
			for i := range x {
				x[i] = Plus(x[i], Times(residual, y[i]))
			}
		}
		mixes := false
		if m.Has("blk.%d.attn_q.weight", l) {
			mixes = true
			add(m.pastAttention(l, h))
		}
		if m.Has("blk.%d.ssm_x.weight", l) {
			mixes = true
			add(m.mamba1(l, h, eps))
		} else if m.Has("blk.%d.ssm_in.weight", l) {
			mixes = true
			add(m.mamba2(l, h, eps))
		}
		if !mixes {
			add(m.feed(l, h))
		}
		for _, name := range []string{"blk.%d.ffn_norm", "blk.%d.ffn_norm.weight"} {
			if m.Has(name, l) {
				for i := range x {
					h[i] = RMSNorm(x[i], m.Tensor(name, l), eps)
				}
				add(m.feed(l, h))
			}
		}
	}
	logits := m.head(x, eps)
	for i := range logits {
		logits[i] = Times(1/m.scale("logit_scale", 1), logits[i])
	}
	return logits
}

// scale returns a hyperparameter, of which 0 stands for other.
func (m *Model) scale(name string, other float64) float64 {
	if v := m.FloatOr(name, 0); v != 0 {
		return v
	}
	return other
}

// affine is a product with a tensor of a layer, plus the bias that it may have.
func (m *Model) affine(l int, name string, x []float64) []float64 {
	y := m.Tensor("blk.%d.%s.weight", l, name).Mul(x)
	if m.Has("blk.%d.%s.bias", l, name) {
		y = Plus(y, m.Tensor("blk.%d.%s.bias", l, name).V)
	}
	return y
}

// pastAttention is attention over the rows so far. Heads rotate in Falcon-H1, by halves, and in Granite where the file says
// so, by neighbours.
func (m *Model) pastAttention(l int, h [][]float64) [][]float64 {
	size := m.Count("attention.key_length")
	rotates := m.arch == "falcon-h1" || m.arch == "granitehybrid" && m.BoolOr("rope.scaling.finetuned", true)
	freq := make([]float64, m.CountOr("rope.dimension_count", size)/2)
	for i := range freq {
		freq[i] = math.Pow(m.FloatOr("rope.freq_base", 10000), -float64(i)/float64(len(freq)))
	}
	q, k, v := make([][]float64, len(h)), make([][]float64, len(h)), make([][]float64, len(h))
	for i := range h {
		q[i], k[i], v[i] = m.affine(l, "attn_q", h[i]), m.affine(l, "attn_k", h[i]), m.affine(l, "attn_v", h[i])
		for _, heads := range [][]float64{q[i], k[i]} {
			for at := 0; rotates && at < len(heads); at += size {
				Rotate(heads[at:at+size], freq, i, 1, m.arch == "falcon-h1")
			}
		}
	}
	out := make([][]float64, len(h))
	for i := range h {
		var all []float64
		group := len(q[i]) / len(k[i])
		for head := range len(q[i]) / size {
			at := head / group * size
			all = append(all, Attend(q[i][head*size:(head+1)*size], Part(k[:i+1], at, size), Part(v[:i+1], at, size), m.scale("attention.scale", 1/math.Sqrt(float64(size))), nil)...)
		}
		out[i] = m.affine(l, "attn_output", all)
	}
	return out
}

// convolved is the causal convolution of each channel with its own taps, the newest last, and SiLU (Gu and Dao 2023,
// section 3.4). Rows before the first are 0.
func (m *Model) convolved(l int, rows [][]float64) [][]float64 {
	w := m.Tensor("blk.%d.ssm_conv1d.weight", l)
	out := make([][]float64, len(rows))
	for t := range rows {
		out[t] = make([]float64, len(rows[t]))
		for c := range out[t] {
			var sum float64
			if m.Has("blk.%d.ssm_conv1d.bias", l) {
				sum = m.Tensor("blk.%d.ssm_conv1d.bias", l).V[c]
			}
			for j, tap := range w.Row(c) {
				if at := t - len(w.Row(c)) + 1 + j; at >= 0 {
					sum += tap * rows[at][c]
				}
			}
			out[t][c] = sum * sigmoid(sum)
		}
	}
	return out
}

func softplus(x float64) float64 {
	if x > 30 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

// mamba1 is Gu and Dao 2023, section 3.4: what the scan gives, gated.
func (m *Model) mamba1(l int, h [][]float64, eps float64) [][]float64 {
	out, zs := m.scan1(l, h, eps)
	for t, y := range out {
		out[t] = m.affine(l, "ssm_out", gated(y, zs[t]))
	}
	return out
}

// gated is y times silu(z).
func gated(y, z []float64) []float64 {
	out := make([]float64, len(y))
	for i, v := range z {
		out[i] = y[i] * v * sigmoid(v)
	}
	return out
}

// scan1 is Gu and Dao 2023, algorithm 2: a state of n values for each channel, and the gates. Jamba norms what the steps are made of, B
// and C, and so does Falcon Mamba, without weights.
func (m *Model) scan1(l int, h [][]float64, eps float64) (out, zs [][]float64) {
	inner, n, rank := m.Count("ssm.inner_size"), m.Count("ssm.state_size"), m.Count("ssm.time_step_rank")
	xs := make([][]float64, len(h))
	out, zs = make([][]float64, len(h)), make([][]float64, len(h))
	for t := range h {
		xz := m.affine(l, "ssm_in", h[t])
		xs[t], zs[t] = xz[:inner], xz[inner:]
	}
	a, d := m.Tensor("blk.%d.ssm_a", l), m.Tensor("blk.%d.ssm_d", l)
	state := make([]float64, inner*n)
	for t, x := range m.convolved(l, xs) {
		p := m.affine(l, "ssm_x", x)
		dt, b, c := m.innerNorm(l, "ssm_dt_norm", p[:rank], eps), m.innerNorm(l, "ssm_b_norm", p[rank:rank+n], eps), m.innerNorm(l, "ssm_c_norm", p[rank+n:], eps)
		steps := m.affine(l, "ssm_dt", dt)
		y := make([]float64, inner)
		for ch := range y {
			step := softplus(steps[ch])
			for k := range n {
				s := &state[ch*n+k]
				*s = math.Exp(step*a.Row(ch)[k])**s + step*b[k]*x[ch]
				y[ch] += *s * c[k]
			}
			y[ch] += d.V[ch] * x[ch]
		}
		out[t] = y
	}
	return out, zs
}

// innerNorm norms x where the file has the weights, or says that all three are normed.
func (m *Model) innerNorm(l int, name string, x []float64, eps float64) []float64 {
	switch {
	case m.Has("blk.%d.%s.weight", l, name):
		return RMSNorm(x, m.Tensor("blk.%d.%s.weight", l, name), eps)
	case m.BoolOr("ssm.dt_b_c_rms", false):
		eps = m.FloatOr("ssm.dt_b_c_rms_epsilon", eps)
		return Times(1/math.Sqrt(dot(x, x)/float64(len(x))+eps), x)
	}
	return x
}

// mamba2 is Dao and Gu 2024, section 7: one decay for each head, B and C shared by the heads of a group, and a norm in
// groups behind the gate.
func (m *Model) mamba2(l int, h [][]float64, eps float64) [][]float64 {
	inner, n, heads, groups := m.Count("ssm.inner_size"), m.Count("ssm.state_size"), m.Count("ssm.time_step_rank"), m.CountOr("ssm.group_count", 1)
	conv, size := inner+2*groups*n, inner/heads
	zs, xbc, steps := make([][]float64, len(h)), make([][]float64, len(h)), make([][]float64, len(h))
	for t := range h {
		p := m.affine(l, "ssm_in", h[t])
		zs[t], xbc[t], steps[t] = p[:inner], p[inner:inner+conv], Plus(p[inner+conv:], m.Tensor("blk.%d.ssm_dt.bias", l).V)
	}
	a, d := m.Tensor("blk.%d.ssm_a", l), m.Tensor("blk.%d.ssm_d", l)
	state := make([]float64, inner*n)
	out := make([][]float64, len(h))
	for t, row := range m.convolved(l, xbc) {
		y := make([]float64, inner)
		for ch := range y {
			head := ch / size
			group := head / (heads / groups)
			b, c := row[inner+group*n:], row[inner+(groups+group)*n:]
			step := softplus(steps[t][head])
			for k := range n {
				s := &state[ch*n+k]
				*s = math.Exp(step*a.V[head])**s + step*row[ch]*b[k]
				y[ch] += *s * c[k]
			}
			y[ch] = (y[ch] + d.V[head]*row[ch]) * zs[t][ch] * sigmoid(zs[t][ch])
		}
		if m.Has("blk.%d.ssm_norm.weight", l) {
			w := m.Tensor("blk.%d.ssm_norm.weight", l).V
			for at := 0; at < inner; at += inner / groups {
				copy(y[at:], RMSNorm(y[at:at+inner/groups], Weights{inner / groups, w[at : at+inner/groups]}, eps))
			}
		}
		out[t] = m.affine(l, "ssm_out", y)
	}
	return out
}

// feed is the feed-forward block of a layer: SwiGLU, or the square of ReLU between two matrices (Nemotron-H), or a mixture
// of such, with a shared expert where the file has one.
func (m *Model) feed(l int, h [][]float64) [][]float64 {
	out := make([][]float64, len(h))
	for i, x := range h {
		switch {
		case !m.Has("blk.%d.ffn_gate_inp.weight", l):
			out[i] = m.feedOf(l, "", 0, x)
			continue
		case m.Has("blk.%d.ffn_latent_down.weight", l):
			narrow := m.affine(l, "ffn_latent_down", x)
			out[i] = m.affine(l, "ffn_latent_up", m.chosen(l, x, len(narrow), func(e int) []float64 { return m.feedOf(l, "_exps", e, narrow) }))
		default:
			out[i] = m.chosen(l, x, len(x), func(e int) []float64 { return m.feedOf(l, "_exps", e, x) })
		}
		if m.Has("blk.%d.ffn_up_shexp.weight", l) {
			out[i] = Plus(out[i], m.feedOf(l, "_shexp", 0, x))
		}
	}
	return out
}

// feedOf is one block: that of a suffix, or an expert of a stack.
func (m *Model) feedOf(l int, suffix string, expert int, x []float64) []float64 {
	product := func(name string, x []float64) []float64 {
		w := m.Tensor("blk.%d.%s%s.weight", l, name, suffix)
		view, _ := m.file.Tensor(fmt.Sprintf("blk.%d.%s%s.weight", l, name, suffix))
		rows := view.Shape[len(view.Shape)-2]
		y := w.rows(expert*rows, rows).Mul(x)
		if m.Has("blk.%d.%s%s.bias", l, name, suffix) {
			y = Plus(y, m.Tensor("blk.%d.%s%s.bias", l, name, suffix).V)
		}
		return y
	}
	up := product("ffn_up", x)
	if m.Has("blk.%d.ffn_gate%s.weight", l, suffix) {
		for i, g := range product("ffn_gate", x) {
			up[i] *= g * sigmoid(g)
		}
	} else {
		for i, u := range up {
			up[i] = math.Pow(math.Max(u, 0), 2)
		}
	}
	return product("ffn_down", up)
}

// chosen is the weighted sum of the experts of a row: by shares of the softmax among all (Jamba) or among the chosen
// (Granite), or by sigmoids, with a bias for the choice (Nemotron).
func (m *Model) chosen(l int, x []float64, width int, expert func(e int) []float64) []float64 {
	affinity := m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(x)
	norm := m.arch == "granitehybrid" || m.BoolOr("expert_weights_norm", false)
	order := affinity
	if m.arch == "nemotron_h_moe" {
		for e, v := range affinity {
			affinity[e] = sigmoid(v)
		}
		order = Plus(affinity, m.Tensor("blk.%d.exp_probs_b.bias", l).V)
	} else {
		affinity = Softmax(affinity)
	}
	best, sum := largest(order, m.Count("expert_used_count")), 0.0
	for _, e := range best {
		sum += affinity[e]
	}
	if !norm {
		sum = 1
	}
	out := make([]float64, width)
	for _, e := range best {
		out = Plus(out, Times(m.scale("expert_weights_scale", 1)*affinity[e]/sum, expert(e)))
	}
	return out
}
