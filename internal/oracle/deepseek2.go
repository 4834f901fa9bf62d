package oracle

import "math"

// deepseek2 is DeepSeek-V2 (2024) and V3, and Mistral Small 4 (2026), whose queries have a temperature that grows by the chunk of
// positions: multi-head latent attention, computed in its plain form with keys and
// values of every head made from the latent, and experts beside shared ones.
func (m *Model) deepseek2(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-6)
	a := m.latent()
	x := m.inputs(ids)
	for l := range m.ownLayers() {
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i := range x {
			h := RMSNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), eps)
			q[i] = a.queries(m, l, h, i, eps)
			if scale := m.FloatOr("attention.temperature_scale", 0); scale > 0 {
				q[i] = Times(1+scale*math.Log(1+math.Floor(float64(i)/float64(m.Count("attention.temperature_length")))), q[i])
			}
			k[i], v[i] = a.keysValues(m, l, h, i, eps)
		}
		for i := range x {
			var all []float64
			for h := range a.heads {
				all = append(all, Attend(q[i][h*a.key():(h+1)*a.key()], Part(k[:i+1], h*a.key(), a.key()), Part(v[:i+1], h*a.value, a.value), a.scale, nil)...)
			}
			x[i] = Plus(x[i], m.Tensor("blk.%d.attn_output.weight", l).Mul(all))
			h := RMSNorm(x[i], m.Tensor("blk.%d.ffn_norm.weight", l), eps)
			if l < m.CountOr("leading_dense_block_count", 0) {
				x[i] = Plus(x[i], m.swiglu(l, "", 0, m.Count("feed_forward_length"), h))
				continue
			}
			x[i] = Plus(x[i], m.routedExperts(l, h))
			if shared := m.CountOr("expert_shared_count", 0); shared > 0 {
				x[i] = Plus(x[i], m.swiglu(l, "_shexp", 0, shared*m.Count("expert_feed_forward_length"), h))
			}
		}
	}
	return m.head(x, eps)
}

type latent struct {
	heads, rank, plain, rope, value int
	freq                            []float64
	scale                           float64
}

func (a *latent) key() int { return a.plain + a.rope }

func (m *Model) latent() *latent {
	a := &latent{heads: m.Count("attention.head_count"), rank: m.Count("attention.kv_lora_rank"), rope: m.Count("rope.dimension_count")}
	a.plain = m.CountOr("attention.key_length_mla", m.CountOr("attention.key_length", 0)) - a.rope
	a.value = m.CountOr("attention.value_length_mla", m.CountOr("attention.value_length", 0))
	factor := m.FloatOr("rope.scaling.factor", 1)
	a.freq = Yarn(a.rope, m.FloatOr("rope.freq_base", 10000), factor, float64(m.CountOr("rope.scaling.original_context_length", 4096)), 32, 1, true)
	temperature := 1 + m.FloatOr("rope.scaling.yarn_log_multiplier", 0)*math.Log(factor)
	a.scale = temperature * temperature / math.Sqrt(float64(a.key()))
	return a
}

func (a *latent) queries(m *Model, l int, h []float64, pos int, eps float64) []float64 {
	var q []float64
	if m.Has("blk.%d.attn_q.weight", l) {
		q = m.Tensor("blk.%d.attn_q.weight", l).Mul(h)
	} else {
		q = RMSNorm(m.Tensor("blk.%d.attn_q_a.weight", l).Mul(h), m.Tensor("blk.%d.attn_q_a_norm.weight", l), eps)
		q = m.Tensor("blk.%d.attn_q_b.weight", l).Mul(q)
	}
	for at := a.plain; at < len(q); at += a.key() {
		Rotate(q[at:at+a.rope], a.freq, pos, 1, false)
	}
	return q
}

func (a *latent) keysValues(m *Model, l int, h []float64, pos int, eps float64) (k, v []float64) {
	both := m.Tensor("blk.%d.attn_kv_a_mqa.weight", l).Mul(h)
	c := RMSNorm(both[:a.rank], m.Tensor("blk.%d.attn_kv_a_norm.weight", l), eps)
	turned := both[a.rank:]
	Rotate(turned, a.freq, pos, 1, false)
	for head := range a.heads {
		kh, vh := a.expand(m, l, head, c)
		k = append(append(k, kh...), turned...)
		v = append(v, vh...)
	}
	return k, v
}

// expand makes the unrotated key and the value of one head from the latent.
func (a *latent) expand(m *Model, l, head int, c []float64) (k, v []float64) {
	if m.Has("blk.%d.attn_kv_b.weight", l) {
		n := a.plain + a.value
		kv := m.Tensor("blk.%d.attn_kv_b.weight", l).rows(head*n, n).Mul(c)
		return kv[:a.plain], kv[a.plain:]
	}
	k = make([]float64, a.plain)
	up := m.Tensor("blk.%d.attn_k_b.weight", l).rows(head*a.rank, a.rank) // [rank, plain]
	for j, x := range c {
		k = Plus(k, Times(x, up.Row(j)))
	}
	return k, m.Tensor("blk.%d.attn_v_b.weight", l).rows(head*a.value, a.value).Mul(c)
}

// swiglu is the feed-forward block of the tensors with a suffix; those of a stack begin at the given expert.
func (m *Model) swiglu(l int, suffix string, expert, ffn int, h []float64) []float64 {
	of := func(name string, out int) Weights {
		return m.Tensor("blk.%d.%s%s.weight", l, name, suffix).rows(expert*out, out)
	}
	var gate, up []float64
	if m.Has("blk.%d.ffn_gate_up%s.weight", l, suffix) { // the rows of the one, then those of the other
		both := of("ffn_gate_up", 2*ffn).Mul(h)
		gate, up = both[:ffn], both[ffn:]
	} else {
		gate, up = of("ffn_gate", ffn).Mul(h), of("ffn_up", ffn).Mul(h)
	}
	for i, g := range gate {
		gate[i] = g * sigmoid(g) * up[i]
	}
	return of("ffn_down", len(h)).Mul(gate)
}

// routedExperts chooses by the affinities of all experts (V2: softmax, V3: sigmoid with a bias that takes part
// in the choice only), within the groups that are allowed.
func (m *Model) routedExperts(l int, h []float64) []float64 {
	affinity := m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(h)
	const sigmoids = 2
	bySigmoid := m.CountOr("expert_gating_func", 1) == sigmoids
	if bySigmoid {
		for e, v := range affinity {
			affinity[e] = sigmoid(v)
		}
	} else {
		affinity = Softmax(affinity)
	}
	order := append([]float64(nil), affinity...)
	if m.Has("blk.%d.exp_probs_b.bias", l) {
		order = Plus(order, m.Tensor("blk.%d.exp_probs_b.bias", l).V)
	}
	m.closeGroups(order, bySigmoid)
	chosen := largest(order, m.Count("expert_used_count"))
	sum := 0.0
	for _, e := range chosen {
		sum += affinity[e]
	}
	if !m.BoolOr("expert_weights_norm", false) {
		sum = 1
	}
	out := make([]float64, len(h))
	for _, e := range chosen {
		weight := m.FloatOr("expert_weights_scale", 1) * affinity[e] / sum
		out = Plus(out, Times(weight, m.swiglu(l, "_exps", e, m.Count("expert_feed_forward_length"), h)))
	}
	return out
}

// closeGroups excludes the experts outside the best groups: by their largest affinity (V2, section 2.2.2), or by the
// sum of the two largest (V3, section 2.1.2).
func (m *Model) closeGroups(order []float64, two bool) {
	groups := m.CountOr("expert_group_count", 1)
	if groups <= 1 {
		return
	}
	n := len(order) / groups
	scores := make([]float64, groups)
	for g := range groups {
		in := order[g*n : (g+1)*n]
		top := largest(in, 2)
		scores[g] = in[top[0]]
		if two {
			scores[g] += in[top[1]]
		}
	}
	for _, g := range largest(scores, groups)[m.Count("expert_group_used_count"):] {
		for e := range n {
			order[g*n+e] = math.Inf(-1)
		}
	}
}
