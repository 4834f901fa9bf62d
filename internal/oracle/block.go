package oracle

import (
	"math"
	"slices"
)

// Block returns the final states and the logits of a block of tokens behind a context, a feature of the target each (DFlash, DFlare, DSpark, 2026).
func (m *Module) Block(features [][]float64, ids []int) (states, logits [][]float64) {
	n, eps, embed := len(features), m.own.floatOr("attention.layer_norm_rms_epsilon", 1e-5), m.target
	if m.own.has("token_embd.weight") {
		embed = m.own
	}
	for _, id := range ids {
		states = append(states, embed.tensor("token_embd.weight").row(id))
	}
	for l := range m.own.count("block_count") {
		var q, k, v [][]float64
		for i := range n + len(ids) {
			kind, h := "", m.context(l, features[min(i, n-1)], eps)
			if i >= n {
				h = rmsNorm(states[i-n], m.own.tensor("blk.%d.attn_norm.weight", l), eps)
				q = append(q, m.heads(l, "attn_q", "", h, i, eps))
			} else if m.own.has("fusion.weight") {
				kind = "_target"
			}
			k, v = append(k, m.heads(l, "attn_k", kind, h, i, eps)), append(v, m.own.tensor("blk.%d.attn_v%s.weight", l, kind).mul(h))
		}
		for i, x := range states {
			sees := len(k)
			if m.own.boolOr("attention.causal", false) {
				sees = n + i + 1
			}
			heads, size, a := m.own.count("attention.head_count"), m.own.count("attention.key_length"), []float64(nil)
			for h := range heads {
				at := h * m.own.count("attention.head_count_kv") / heads * size
				a = append(a, attend(q[i][h*size:(h+1)*size], part(k[:sees], at, size), part(v[:sees], at, size), 1/math.Sqrt(float64(size)), nil)...)
			}
			x = plus(x, m.own.tensor("blk.%d.attn_output.weight", l).mul(a))
			states[i] = plus(x, m.own.gatedBlock(l, rmsNorm(x, m.own.tensor("blk.%d.ffn_norm.weight", l), eps)))
		}
	}
	for i, x := range states {
		states[i] = rmsNorm(x, m.own.tensor("output_norm.weight"), eps)
		logits = append(logits, m.head(states[i]))
	}
	return states, logits
}

// context returns what a layer's keys and values of a feature are made of.
func (m *Module) context(l int, feature []float64, eps float64) []float64 {
	norm := m.own.tensor("hidden_norm.weight")
	if !m.own.has("fusion.weight") {
		return rmsNorm(m.own.tensor("fc.weight").mul(feature), norm, eps)
	}
	sum := make([]float64, len(norm.v))
	for t, w := range softmax(m.own.tensor("fusion.weight").row(l)) {
		sum = plus(sum, times(w, feature[t*len(sum):][:len(sum)]))
	}
	return rmsNorm(sum, norm, eps)
}

// heads returns the queries or keys of a row at a place, normed head by head and rotated.
func (m *Module) heads(l int, name, kind string, h []float64, place int, eps float64) []float64 {
	out, norm := m.own.tensor("blk.%d.%s%s.weight", l, name, kind).mul(h), m.own.tensor("blk.%d.%s_norm.weight", l, name)
	for at := 0; at < len(out); at += norm.in {
		copy(out[at:], rmsNorm(out[at:at+norm.in], norm, eps))
		rotate(out[at:at+norm.in], yarn(norm.in, m.own.floatOr("rope.freq_base", 10000), 1, 4096, 32, 1, true), place, 1, true)
	}
	return out
}

// Order returns what a token adds to the logits behind it, and the logit of the next draft being accepted, behind the state of the block's row.
func (m *Module) Order(id int, state []float64) (logits []float64, trust float64) {
	row, trusts := m.own.tensor("markov_w1.weight").row(id), m.own.tensor("conf_proj.weight")
	return m.own.tensor("markov_w2.weight").mul(row), trusts.mul(slices.Concat(state, row))[0] + m.own.tensor("conf_proj.bias").v[0]
}
