package oracle

import "math"

// gemma3n is Gemma 3n (Google 2025) by its published code: four streams, which a layer predicts from those before it, corrects by what its
// blocks make of the first, and ends with its inputs added to the other three.
func (m *Model) gemma3n(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-6)
	width, n := m.Count("embedding_length"), m.CountOr("embedding_length_per_layer_input", 256)
	layers := m.unitLayers(m.CountOr("attention.shared_kv_layers", max(0, m.Count("block_count")-20)), m.periodOr(5))
	x, inputs := make([][][]float64, len(ids)), make([][]float64, len(ids)) // by row and stream
	for i, id := range ids {
		h := Times(math.Sqrt(float64(width)), m.Tensor("token_embd.weight").Row(id))
		inputs[i] = m.layerInputs(id, h, n, eps)
		x[i] = [][]float64{h, m.alike("altup_proj", 0, h, h), m.alike("altup_proj", 1, h, h), m.alike("altup_proj", 2, h, h)}
	}
	all := make([]kept, len(layers))
	for l, u := range layers {
		w := func(name string) Weights { return m.Tensor("blk.%d.%s.weight", l, name) }
		norm := func(name string, h []float64) []float64 { return RMSNorm(h, w(name), eps) }
		route := func(h []float64) []float64 {
			out := w("altup_router").Mul(Times(1/float64(width), norm("altup_router_norm", h)))
			for i := range out {
				out[i] = math.Tanh(out[i])
			}
			return out
		}
		h := make([][]float64, len(x))
		for i := range x {
			c := w("altup_predict_coef").Mul(route(x[i][0]))
			next := make([][]float64, 4)
			for to := range next {
				next[to] = x[i][to]
				for from := range x[i] {
					next[to] = Plus(next[to], Times(c[4*to+from], x[i][from]))
				}
			}
			x[i] = next
			h[i] = norm("attn_norm", x[i][0])
		}
		quantile := 0.0
		if sparse, ok := m.floats("activation_sparsity_scale"); ok {
			quantile = math.Max(0, sparse[l])
		} else if l < 10 {
			quantile = 1.6448533535003662
		}
		for i, a := range m.unitAttention(l, u, h, all, eps) {
			low := Plus(h[i], norm("laurel_post_norm", w("laurel_r").Mul(w("laurel_l").Mul(h[i]))))
			mid := Times(1/math.Sqrt2, Plus(Plus(x[i][0], norm("post_attention_norm", a)), low))
			made := Plus(mid, norm("post_ffw_norm", m.geluBlock(l, norm("ffn_norm", mid), quantile)))
			shares, news := w("altup_correct_coef").Mul(route(made)), Plus(made, Times(-1, x[i][0]))
			for s := range x[i] {
				x[i][s] = Plus(x[i][s], Times(shares[s]+1, news))
			}
			first := make([]float64, width)
			for j, v := range w("altup_correct_scale").V {
				first[j] = v * x[i][0][j]
			}
			add := m.inputGate(l, first, inputs[i][l*n:(l+1)*n], eps)
			for s := 1; s < 4; s++ {
				x[i][s] = Plus(x[i][s], add)
			}
		}
	}
	out := make([][]float64, len(x))
	for i := range x {
		out[i] = x[i][0]
		for s := range 3 {
			out[i] = Plus(out[i], m.alike("altup_unembd_proj", s, x[i][s+1], x[i][0]))
		}
		out[i] = Times(0.25, out[i])
	}
	return m.capped(m.head(out, eps), 30)
}

// alike is a product with matrix number i of a stack, as long as another vector.
func (m *Model) alike(stack string, i int, h, as []float64) []float64 {
	out := m.Tensor("%s.weight", stack).rows(i*len(h), len(h)).Mul(h)
	n := float64(len(h))
	return Times(math.Sqrt(dot(as, as)/n)/math.Sqrt(math.Max(dot(out, out)/n, 1e-5)), out)
}
