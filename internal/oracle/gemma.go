package oracle

import (
	"math"

	"grove/internal/weights/tensor"
)

// kept is the keys and values of the rows of a layer.
type kept struct{ k, v [][]float64 }

// unitLayer is what differs between the layers of Gemma 3n and 4.
type unitLayer struct {
	heads, kvHeads, size int
	window               int // 0: none
	freq                 []float64
	from                 int // the layer whose keys and values are read: itself, or an earlier one
}

// unitLayers returns the settings of each layer. The last shared ones read the keys of the last layer before them of their kind.
func (m *Model) unitLayers(shared, period int) []unitLayer {
	layers := make([]unitLayer, m.Count("block_count"))
	pattern, _ := m.array("attention.sliding_window_pattern")
	for l := range layers {
		u := unitLayer{heads: m.Count("attention.head_count"), kvHeads: m.countOf("attention.head_count_kv", l), from: l}
		u.size = m.CountOr("attention.key_length", m.Count("embedding_length")/u.heads)
		slides := l%period != period-1
		if pattern != nil {
			slides = pattern[l] != 0
		}
		base := m.FloatOr("rope.freq_base", 10000)
		if slides {
			u.window, base = m.Count("attention.sliding_window"), m.FloatOr("rope.freq_base_swa", 10000)
			u.size = m.CountOr("attention.key_length_swa", u.size)
		}
		for i := range u.size / 2 {
			f := math.Pow(base, -2*float64(i)/float64(u.size))
			if !slides && m.Has("rope_freqs.weight") {
				f /= m.Tensor("rope_freqs.weight").V[i]
			}
			u.freq = append(u.freq, f)
		}
		for own := len(layers) - shared; l >= own && (u.from >= own || (layers[u.from].window > 0) != slides); {
			u.from--
		}
		layers[l] = u
	}
	return layers
}

// unitAttention is the attention of a layer, from normed rows to its additions. all has the keys and values of the layers so far.
func (m *Model) unitAttention(l int, u unitLayer, x [][]float64, all []kept, eps float64) [][]float64 {
	head := func(row []float64, pos int, norm string, turns bool) {
		w := Weights{In: u.size, V: make([]float64, u.size)}
		for i := range w.V {
			w.V[i] = 1
		}
		if norm != "" {
			w = m.Tensor("blk.%d.%s.weight", l, norm)
		}
		for at := 0; at < len(row); at += u.size {
			one := row[at : at+u.size]
			copy(one, RMSNorm(one, w, eps))
			if turns {
				Rotate(one, u.freq, pos, 1, true)
			}
		}
	}
	linear := func(name string, x []float64) []float64 {
		y := m.Tensor("blk.%d.%s.weight", l, name).Mul(x)
		if m.Has("blk.%d.%s.bias", l, name) {
			y = Plus(y, m.Tensor("blk.%d.%s.bias", l, name).V)
		}
		return y
	}
	for i := 0; i < len(x) && u.from == l; i++ {
		k := linear("attn_k", x[i])
		v := append([]float64(nil), k...)
		if m.Has("blk.%d.attn_v.weight", l) {
			v = linear("attn_v", x[i])
		}
		head(k, i, "attn_k_norm", true)
		head(v, i, "", false)
		all[l].k, all[l].v = append(all[l].k, k), append(all[l].v, v)
	}
	out := make([][]float64, len(x))
	for i := range x {
		q := linear("attn_q", x[i])
		head(q, i, "attn_q_norm", true)
		first, end := m.sees(i, len(x), u.window)
		var sum []float64
		for h := range u.heads {
			at := h / (u.heads / u.kvHeads) * u.size
			sum = append(sum, Attend(q[h*u.size:(h+1)*u.size], Part(all[u.from].k[first:end], at, u.size), Part(all[u.from].v[first:end], at, u.size), 1, nil)...)
		}
		out[i] = m.Tensor("blk.%d.attn_output.weight", l).Mul(sum)
	}
	return out
}

// sees returns the rows [first, end) of n that row i sees in a layer with a window; 0: without. A row of a canvas sees what the first one sees, and all of the canvas.
func (m *Model) sees(i, n, window int) (first, end int) {
	end = i + 1
	if text := n - m.Canvas; m.Canvas > 0 && i >= text {
		i, end = text, n
	}
	if window > 0 {
		first = max(0, i-window+1)
	}
	return first, end
}

// canvasInput is the input of token i of a canvas of DiffusionGemma (Google 2026) whose scaled embedding is x.
func (m *Model) canvasInput(i int, x []float64, eps float64) []float64 {
	ones := Weights{In: len(x), V: make([]float64, len(x))}
	for j := range ones.V {
		ones.V[j] = 1
	}
	if m.Prior != nil {
		expected := make([]float64, len(x))
		for id, p := range Softmax(Times(1/m.Temperature, m.Prior[i])) {
			expected = Plus(expected, Times(p*math.Sqrt(float64(len(x))), m.Tensor("token_embd.weight").Row(id)))
		}
		expected = RMSNorm(expected, m.Tensor("self_cond_pre_norm.weight"), eps)
		gate, up := m.Tensor("self_cond_gate.weight").Mul(expected), m.Tensor("self_cond_up.weight").Mul(expected)
		for j := range gate {
			gate[j] = m.gelu(gate[j]) * up[j]
		}
		x = Plus(x, m.Tensor("self_cond_down.weight").Mul(gate))
	}
	return RMSNorm(x, ones, eps)
}

// layerInputs returns the inputs of every layer, side by side, of a row with the embedding x.
func (m *Model) layerInputs(id int, x []float64, n int, eps float64) []float64 {
	out := Times(1/math.Sqrt(float64(len(x))), m.Tensor("per_layer_model_proj.weight").Mul(x))
	for at := 0; at < len(out); at += n {
		copy(out[at:], RMSNorm(out[at:at+n], m.Tensor("per_layer_proj_norm.weight"), eps))
	}
	return Times(1/math.Sqrt2, Plus(out, Times(math.Sqrt(float64(n)), m.Tensor("per_layer_token_embd.weight").Row(id))))
}

// inputGate is what the stream h takes from a layer's inputs.
func (m *Model) inputGate(l int, h, inputs []float64, eps float64) []float64 {
	mid := m.Tensor("blk.%d.inp_gate.weight", l).Mul(h)
	for i := range mid {
		mid[i] = m.gelu(mid[i]) * inputs[i]
	}
	return RMSNorm(m.Tensor("blk.%d.proj.weight", l).Mul(mid), m.Tensor("blk.%d.post_norm.weight", l), eps)
}

// gelu is [gelu], or with Half what a table of half floats has for it.
func (m *Model) gelu(x float64) float64 {
	if !m.Half || math.Abs(x) >= 10 {
		return gelu(x)
	}
	return half(gelu(half(x)))
}

// half rounds to half precision.
func half(x float64) float64 {
	b, f := make([]byte, 2), []float32{float32(x)}
	if err := tensor.Pack(tensor.F16, b, f); err != nil {
		panic(err)
	}
	if err := tensor.Unpack(tensor.F16, f, b); err != nil {
		panic(err)
	}
	return float64(f[0])
}

// gemma4 is Gemma 4 (Google 2026) by its published code: heads of values are normed without weights, products of heads have no scale, and a layer ends
// with its inputs and a factor. A mixture, if any, runs beside the plain block; its router reads the stream normed, over the root of its width.
func (m *Model) gemma4(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-6)
	width, n := m.Count("embedding_length"), m.CountOr("embedding_length_per_layer_input", 0)
	x, inputs := make([][]float64, len(ids)), make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = Times(math.Sqrt(float64(width)), m.Tensor("token_embd.weight").Row(id))
		if n > 0 {
			inputs[i] = m.layerInputs(id, x[i], n, eps)
		}
		if at := i - (len(ids) - m.Canvas); at >= 0 && m.Canvas > 0 {
			x[i] = m.canvasInput(at, x[i], eps)
		}
	}
	layers := m.unitLayers(m.CountOr("attention.shared_kv_layers", 0), 6)
	all := make([]kept, len(layers))
	for l, u := range layers {
		norm := func(name string, h []float64) []float64 {
			return RMSNorm(h, m.Tensor("blk.%d.%s.weight", l, name), eps)
		}
		h := make([][]float64, len(x))
		for i := range x {
			h[i] = norm("attn_norm", x[i])
		}
		for i, a := range m.unitAttention(l, u, h, all, eps) {
			x[i] = Plus(x[i], norm("post_attention_norm", a))
			f := m.geluBlock(l, norm("ffn_norm", x[i]), 0)
			if m.Has("blk.%d.ffn_gate_inp.weight", l) {
				f = Plus(norm("post_ffw_norm_1", f), norm("post_ffw_norm_2", m.geluExperts(l, x[i], norm("pre_ffw_norm_2", x[i]), eps)))
			}
			x[i] = Plus(x[i], norm("post_ffw_norm", f))
			if n > 0 {
				x[i] = Plus(x[i], m.inputGate(l, x[i], inputs[i][l*n:(l+1)*n], eps))
			}
			if scale := "blk.%d.layer_output_scale.weight"; m.Has(scale, l) {
				if text := "blk.%d.enc_layer_output_scale.weight"; i < len(ids)-m.Canvas && m.Has(text, l) {
					scale = text
				}
				x[i] = Times(m.Tensor(scale, l).V[0], x[i])
			}
		}
	}
	return m.capped(m.head(x, eps), 30)
}

// capped is the soft cap of logits.
func (m *Model) capped(logits [][]float64, other float64) [][]float64 {
	limit := m.FloatOr("final_logit_softcapping", other)
	for _, row := range logits {
		for i := range row {
			row[i] = limit * math.Tanh(row[i]/limit)
		}
	}
	return logits
}

// geluBlock is the gated block. Where quantile is above 0, the gate keeps what lies so many standard deviations above its mean.
func (m *Model) geluBlock(l int, h []float64, quantile float64) []float64 {
	gate, up := m.Tensor("blk.%d.ffn_gate.weight", l).Mul(h), m.Tensor("blk.%d.ffn_up.weight", l).Mul(h)
	if quantile > 0 {
		mean, square := 0.0, 0.0
		for _, v := range gate {
			mean += v / float64(len(gate))
		}
		for _, v := range gate {
			square += (v - mean) * (v - mean)
		}
		for i, v := range gate {
			gate[i] = math.Max(0, v-mean-quantile*math.Sqrt(square/float64(len(gate)-1)))
		}
	}
	for i := range gate {
		gate[i] = m.gelu(gate[i]) * up[i]
	}
	return m.Tensor("blk.%d.ffn_down.weight", l).Mul(gate)
}

// geluExperts is the mixture of Gemma 4: shares of the softmax among the chosen, each times its expert's own factor.
func (m *Model) geluExperts(l int, stream, h []float64, eps float64) []float64 {
	route := Times(1/math.Sqrt(float64(len(stream))), RMSNorm(stream, m.Tensor("blk.%d.ffn_gate_inp.scale", l), eps))
	logits := m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(route)
	n := m.Count("expert_feed_forward_length")
	chosen := largest(logits, m.Count("expert_used_count"))
	var of []float64
	for _, e := range chosen {
		of = append(of, logits[e])
	}
	out := make([]float64, len(h))
	for rank, p := range Softmax(of) {
		e := chosen[rank]
		both := m.Tensor("blk.%d.ffn_gate_up_exps.weight", l).rows(e*2*n, 2*n).Mul(h)
		for i := range n {
			both[i] = m.gelu(both[i]) * both[n+i]
		}
		down := m.Tensor("blk.%d.ffn_down_exps.weight", l).rows(e*len(h), len(h)).Mul(both[:n])
		out = Plus(out, Times(p*m.Tensor("blk.%d.ffn_down_exps.scale", l).V[e], down))
	}
	return out
}
